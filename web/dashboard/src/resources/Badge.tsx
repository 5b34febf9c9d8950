import { ValueText } from '../text/KeyText';
import { hueOf, severityOf } from './severity';
import './Badge.css';

/** A word of an enumeration. A well-known state has a colour and a sign of its severity; any other word has a colour of its own. */
export function Badge({ text }: { text: string }) {
  const severity = severityOf(text);
  return (
    <span className="badge" {...(severity ? { 'data-severity': severity } : { 'data-hue': hueOf(text) })}>
      <ValueText text={text} />
    </span>
  );
}
