import { count } from '../text/number';
import type { Look, Sheet } from './model';

/** Lets what is shown stand still, and go on step by step. */
export function PauseButtons({ sheet, look: { paused, waiting } }: { sheet: Sheet; look: Look }) {
  return (
    <div className="bar pause">
      <button type="button" aria-pressed={paused > 0} onClick={() => (paused > 0 ? sheet.resume() : sheet.pause())}>Pause</button>
      {paused > 0 && <>
        <button type="button" disabled={waiting === 0} onClick={() => sheet.step()}>Step</button>
        <span className="soft">{count(waiting)} {waiting === 1 ? 'change waiting' : 'changes waiting'}</span>
      </>}
    </div>
  );
}
