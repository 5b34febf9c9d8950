import type { Watch } from '@watchtide/protocol';
import type { Column } from '../app/DataTable';
import { href } from '../app/route';
import type { Rates } from '../charts/rates';
import { bytes, count } from '../text/number';
import { Changes } from './Changes';
import { LastError } from './LastError';
import { OfWhole } from './OfWhole';
import { compareNames, rank } from './order';
import { State } from './State';

/** Returns the columns of the watches. The widths are fixed, so that columns do not move while the numbers change. */
export const columnsOf = (rates: Rates): readonly Column<Watch>[] => [
  {
    title: 'Watch',
    cell: (watch) => <Names watch={watch} />,
    width: 15,
    sort: { by: 'name', compare: compareNames },
  },
  {
    title: 'State',
    cell: (watch) => <State watch={watch} />,
    width: 13.5,
    sort: { by: 'state', compare: (a, b) => rank(a) - rank(b) },
    card: 'head',
  },
  { title: 'Resources', cell: (watch) => <OfWhole watch={watch}>{count(watch.count)}</OfWhole>, width: 8, numeric: true },
  { title: 'Changes per second', cell: ({ name }) => <Changes samples={rates.of(name)} />, width: 17.5, card: 'wide' },
  { title: 'Subscribers', cell: (watch) => <OfWhole watch={watch}>{count(watch.subscribers)}</OfWhole>, width: 9, numeric: true },
  { title: 'Revision, epoch', cell: (watch) => <Position watch={watch} />, width: 11.5, card: 'wide', className: 'position' },
  { title: 'Bytes held', cell: (watch) => <OfWhole watch={watch}>{bytes(watch.bytes)}</OfWhole>, width: 8.5, numeric: true },
  { title: 'Last upstream error', cell: (watch) => <LastError watch={watch} />, width: 17, card: 'wide' },
];

function Names({ watch: { name, source } }: { watch: Watch }) {
  return (
    <span className="names">
      <a className="name" href={href('watches', name)}>
        {name}
      </a>
      <span className="soft">
        {source} ·{' '}
        <a href={href('stream', name)}>
          stream<span className="visually-hidden"> of {name}</span>
        </a>
      </span>
    </span>
  );
}

function Position({ watch: { revision, epoch } }: { watch: Watch }) {
  return (
    <>
      <code>{revision}</code> <code className="soft">{epoch}</code>
    </>
  );
}
