import { count } from '../text/number';
import type { TableModel } from './table';
import { useStatus, useThrottledStatus } from './useTableModel';

/** Buttons to pause the table, and to continue step by step. */
export function PauseButtons({ model }: { model: TableModel }) {
  const paused = useStatus(model, ({ paused }) => paused);
  const waiting = useThrottledStatus(model, ({ waiting }) => waiting);
  return (
    <div className="bar pause">
      <button type="button" aria-pressed={paused > 0} onClick={() => (paused > 0 ? model.resume() : model.pause())}>
        Pause
      </button>
      {paused > 0 && (
        <>
          <button type="button" disabled={waiting === 0} onClick={() => model.step()}>
            Step
          </button>
          <span className="soft">
            {count(waiting)} {waiting === 1 ? 'change waiting' : 'changes waiting'}
          </span>
        </>
      )}
    </div>
  );
}
