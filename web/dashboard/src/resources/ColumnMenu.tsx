import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { setOptions } from '../app/route';
import { column } from './column';
import type { Columns } from './useColumns';

/** A menu to choose the columns, which are kept in the URL. */
export function ColumnMenu({ columns: { shown, known } }: { columns: Columns }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const menu = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return;
    const elsewhere = ({ target }: Event) => {
      if (!menu.current?.contains(target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', elsewhere);
    return () => document.removeEventListener('pointerdown', elsewhere);
  }, [open]);

  const ids = shown.map(({ id }) => id);
  const choose = (chosen: string[] | undefined) => setOptions({ columns: chosen?.join(',') });
  const toggle = (id: string) => choose(ids.includes(id) ? ids.filter((other) => other !== id) : [...ids, id]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !open) return;
    event.stopPropagation();
    setOpen(false);
    button.current?.focus();
  };
  return (
    <div ref={menu} className="column-menu" onKeyDown={onKeyDown}>
      <button ref={button} type="button" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        Columns
      </button>
      <fieldset id={id} className="card" hidden={!open}>
        <legend className="visually-hidden">Columns</legend>
        {known.map((id) => (
          <label key={id}>
            <input type="checkbox" checked={ids.includes(id)} disabled={ids.length === 1 && ids[0] === id} onChange={() => toggle(id)} />{' '}
            {column(id).title}
          </label>
        ))}
        <button type="button" onClick={() => choose(undefined)}>
          Choose automatically
        </button>
      </fieldset>
    </div>
  );
}
