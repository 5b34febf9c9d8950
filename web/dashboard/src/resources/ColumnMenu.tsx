import { useMenu } from '../app/menu';
import { setOptions } from '../app/route';
import { ValueText } from '../text/KeyText';
import { column } from './column';
import type { Columns } from './useColumns';

/** A menu to choose the columns, which are kept in the URL. */
export function ColumnMenu({ columns: { shown, known } }: { columns: Columns }) {
  const { open, menu, button, props, panel } = useMenu();
  const ids = shown.map(({ id }) => id);
  const choose = (chosen: string[] | undefined) => setOptions({ columns: chosen?.join(',') });
  const toggle = (id: string) => choose(ids.includes(id) ? ids.filter((other) => other !== id) : [...ids, id]);
  return (
    <div ref={menu} className="column-menu" {...props}>
      <button ref={button.ref} type="button" {...button.props}>
        Columns
      </button>
      <fieldset id={panel} className="card" hidden={!open}>
        <legend className="visually-hidden">Columns</legend>
        {known.map((id) => (
          <label key={id}>
            <input type="checkbox" checked={ids.includes(id)} disabled={ids.length === 1 && ids[0] === id} onChange={() => toggle(id)} />{' '}
            <ValueText text={column(id).title} />
          </label>
        ))}
        <button type="button" onClick={() => choose(undefined)}>
          Choose automatically
        </button>
      </fieldset>
    </div>
  );
}
