import { useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { href, parseRoute, setOptions } from '../app/route';
import { Answer } from './Answer';
import { EventList } from './EventList';
import { Examples } from './Examples';
import { RequestForm } from './RequestForm';
import { optionsOf, parseRequest, type StreamRequest } from './request';
import { TypeFilter } from './TypeFilter';
import { useStreamTrouble } from './trouble';
import { WatchList } from './WatchList';
import { type Connection, Wire } from './wire';
import './wire.css';

/** Shows the events of a stream as they arrive; without a watch, a list of watches. */
export function WirePage({ watch }: { watch: string }) {
  return watch === '' ? <WatchList /> : <Stream watch={watch} />;
}

function Stream({ watch }: { watch: string }) {
  const wire = useMemo(() => new Wire(), []);
  const connection = useSyncExternalStore(wire.subscribe, wire.connection);
  const [request, setRequest] = useState<StreamRequest>(() => parseRequest(watch, parseRoute(location.hash).options));
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const list = useHeld(connection);
  useStreamTrouble(connection);
  // biome-ignore lint/correctness/useExhaustiveDependencies: later requests are made with the button
  useEffect(() => {
    wire.connect(request);
    return () => wire.disconnect();
  }, [wire]);

  function connect(to: StreamRequest): void {
    setRequest(to);
    setOptions(optionsOf(to));
    list.go();
    wire.connect(to);
  }
  return (
    <div className="wire">
      <div className="bar">
        <h2>Stream of {watch}</h2>
        <a href={href('watches', watch)}>Resources</a>
      </div>
      <RequestForm
        request={request}
        connection={connection}
        onChange={setRequest}
        onConnect={connect}
        onDisconnect={() => wire.disconnect()}
      />
      <Answer connection={connection} />
      <TypeFilter types={connection.kept.types} hidden={hidden} onHide={setHidden}>
        <button type="button" aria-pressed={list.held} onClick={list.held ? list.go : list.hold}>
          Pause
        </button>
        <button
          type="button"
          onClick={() => {
            wire.clear();
            list.go();
          }}
        >
          Clear
        </button>
      </TypeFilter>
      <EventList kept={list.kept} newest={connection.kept} held={list.held} hidden={hidden} onHold={list.hold} onGo={list.go} />
      <Examples request={request} />
    </div>
  );
}

// The list can be paused while the stream continues.
function useHeld({ kept }: Connection) {
  const [held, setHeld] = useState<Connection['kept']>();
  return { kept: held ?? kept, held: held !== undefined, hold: () => setHeld((before) => before ?? kept), go: () => setHeld(undefined) };
}
