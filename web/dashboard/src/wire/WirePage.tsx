import { useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { href, parseRoute, setOptions } from '../app/route';
import { Answer } from './Answer';
import { AskForm } from './RequestForm';
import { Choice } from './WatchList';
import { EventList } from './EventList';
import { Examples } from './Examples';
import { askOf, optionsOf, type Ask } from './request';
import { useStreamTrouble } from './trouble';
import { TypeFilter } from './TypeFilter';
import { Wire, type Connection } from './wire';
import './wire.css';

/** The events of a stream as they come; without a watch, the watches to choose from. */
export function WirePage({ watch }: { watch: string }) {
  return watch === '' ? <Choice /> : <Stream watch={watch} />;
}

function Stream({ watch }: { watch: string }) {
  const wire = useMemo(() => new Wire(), []);
  const connection = useSyncExternalStore(wire.subscribe, wire.connection);
  const [ask, setAsk] = useState<Ask>(() => askOf(watch, parseRoute(location.hash).options));
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const list = useHeld(connection);
  useStreamTrouble(connection);
  useEffect(() => {
    wire.connect(ask);
    return () => wire.disconnect();
  }, [wire]); // what is asked for later, is asked for with the button

  function connect(to: Ask): void {
    setAsk(to);
    setOptions(optionsOf(to));
    list.go();
    wire.connect(to);
  }
  return (
    <div className="wire">
      <div className="bar"><h2>Stream of {watch}</h2><a href={href('watches', watch)}>Resources</a></div>
      <AskForm ask={ask} connection={connection} onChange={setAsk} onConnect={connect} onDisconnect={() => wire.disconnect()} />
      <Answer connection={connection} />
      <TypeFilter types={connection.kept.types} hidden={hidden} onHide={setHidden}>
        <button type="button" aria-pressed={list.held} onClick={list.held ? list.go : list.hold}>Pause</button>
        <button type="button" onClick={() => { wire.clear(); list.go(); }}>Clear</button>
      </TypeFilter>
      <EventList kept={list.kept} newest={connection.kept} held={list.held} hidden={hidden} onHold={list.hold} onGo={list.go} />
      <Examples ask={ask} />
    </div>
  );
}

// The list that is shown: it can be held still, while the stream goes on.
function useHeld({ kept }: Connection) {
  const [held, setHeld] = useState<Connection['kept']>();
  return { kept: held ?? kept, held: held !== undefined, hold: () => setHeld((before) => before ?? kept), go: () => setHeld(undefined) };
}
