import type { Resource } from '@watchtide/client';
import { useEffect, useRef, useState } from 'react';
import { KeyText, ValueText } from '../text/KeyText';
import { type Change, useChange } from './change';
import { Dialog } from './Dialog';
import { Difference } from './Difference';
import { type Draft, useDraft } from './draft';
import { format } from './json';
import { useLanguage } from './language';
import { NewerValue } from './NewerValue';
import { isConflict } from './resource';
import { ValueField } from './ValueField';
import { useValidation } from './validation';

export interface Props {
  watch: string;
  resource?: Resource | undefined;
  onClose(): void;
}

/** Creates a resource, or edits the value of one. */
export function EditorDialog({ watch, resource, onClose }: Props) {
  const draft = useDraft(watch, resource, onClose);
  const { target, text, base, begun, saving, newer } = draft;
  const change = useChange(target, base?.revision);
  const edited = useLanguage(text, draft.setText);
  const { fault } = edited;
  const ready = begun && !saving && !newer && !fault && text !== '' && target.key !== '';
  const [validation, check] = useValidation(target, text, base?.revision, ready);
  const [leaving, setLeaving] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useUnsaved(draft.dirty, setLeaving);

  const leave = () => (draft.dirty ? setLeaving(true) : onClose());
  const select = (at: number) => {
    field.current?.focus();
    field.current?.setSelectionRange(at, at + 1);
  };
  const toFault = () => select(fault?.at ?? 0);
  const save = () => (fault || text === '' ? toFault() : draft.save());
  return (
    <Dialog
      title={
        resource ? (
          <>
            Edit “<KeyText text={resource.key} />”
          </>
        ) : (
          `New resource in ${watch}`
        )
      }
      onLeave={leave}
      aside={base && <span className="soft">revision {base.revision}</span>}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        {!resource && (
          <label className="key">
            Key{' '}
            <input
              value={target.key}
              required
              autoFocus={!base}
              readOnly={base !== undefined}
              autoCapitalize="off"
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => draft.setKey(event.target.value)}
            />
          </label>
        )}
        <div role="alert">
          <ConflictNotice change={change} draft={draft} />
        </div>
        <div className={newer ? 'sides two' : 'sides'}>
          <ValueField
            field={field}
            text={edited.text}
            language={edited.language}
            fault={fault}
            validation={validation}
            readOnly={!begun}
            onChange={edited.change}
            onLanguage={edited.choose}
            onFault={toFault}
            onSelect={select}
          />
          {newer && (
            <NewerValue
              loaded={newer === 'gone' ? undefined : newer}
              overwrite={newer === 'gone' ? 'Create it again with my text' : 'Keep my text and overwrite it'}
              onLoad={() => draft.rebase('theirs')}
              onOverwrite={() => draft.rebase('ours')}
            />
          )}
        </div>
        {base && draft.dirty && !fault && <Difference before={format(base.text)} after={format(text)} />}
        {leaving && draft.dirty ? (
          <UnsavedPrompt onClose={onClose} onStay={() => setLeaving(false)} />
        ) : (
          <div className="bar buttons">
            {edited.language === 'json' && (
              <button type="button" disabled={!text || fault !== undefined} onClick={() => draft.setText(format(text))}>
                Format
              </button>
            )}
            <button type="button" disabled={!ready} onClick={check}>
              Check
            </button>
            <button type="button" className="push" onClick={leave}>
              Cancel
            </button>
            <button type="submit" className="primary" disabled={!begun || saving || newer !== undefined}>
              {saving ? 'Saving…' : 'Save'}
            </button>
          </div>
        )}
      </form>
    </Dialog>
  );
}

// Reports events at the gateway since the user began to edit.
function ConflictNotice({ change, draft: { begun, newer, base, refusal, loadCurrent } }: { change: Change; draft: Draft }) {
  const shown = newer === 'gone' ? change.what === 'deleted' : newer !== undefined && newer.revision === change.revision;
  const told = begun && change.what !== '';
  return (
    <>
      {told && (
        <p className="notice wait">
          {sentence(change, base?.revision)}{' '}
          {!shown && (
            <button type="button" onClick={loadCurrent}>
              Show the current value
            </button>
          )}
        </p>
      )}
      {refusal && !(told && isConflict(refusal)) && (
        <p className="notice bad">
          {refusal.status > 0 && `${refusal.status}: `}
          <ValueText text={refusal.reason} />
        </p>
      )}
    </>
  );
}

function sentence({ what, revision }: Change, base: string | undefined): string {
  switch (what) {
    case 'created':
      return `A resource with this key already exists, at revision ${revision}.`;
    case 'changed':
      return `The resource has changed: it is now at revision ${revision}, but your text is based on ${base}.`;
    case 'deleted':
      return 'The resource has been deleted.';
    case '':
      return '';
  }
}

function UnsavedPrompt({ onClose, onStay }: { onClose(): void; onStay(): void }) {
  return (
    <div className="bar buttons" role="group" aria-label="Your changes are not saved">
      <strong>Your changes are not saved.</strong>
      <button type="button" className="danger push" onClick={onClose}>
        Discard changes
      </button>
      <button type="button" className="primary" autoFocus onClick={onStay}>
        Keep editing
      </button>
    </div>
  );
}

// Leaving the page would lose the text as well: then the browser asks. It does not ask
// within the page, when the user goes back for example, so we do if we can.
function useUnsaved(dirty: boolean, ask: (leaving: true) => void): void {
  useEffect(() => {
    if (!dirty) return;
    const stay = (event: Event) => event.preventDefault();
    const stayHere = (event: NavigateEvent) => {
      if (!event.cancelable || !event.destination.sameDocument || event.navigationType === 'replace') return;
      event.preventDefault();
      ask(true);
    };
    const views = 'navigation' in globalThis ? navigation : undefined;
    addEventListener('beforeunload', stay);
    views?.addEventListener('navigate', stayHere);
    return () => {
      removeEventListener('beforeunload', stay);
      views?.removeEventListener('navigate', stayHere);
    };
  }, [dirty, ask]);
}
