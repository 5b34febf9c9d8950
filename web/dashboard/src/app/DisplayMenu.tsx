import { useMenu } from './menu';
import { changeSettings, type Settings, useSettings } from './settings';
import './DisplayMenu.css';

const themes: ReadonlyArray<readonly [Settings['theme'], string]> = [
  ['system', 'As the system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
];
const densities: ReadonlyArray<readonly [Settings['density'], string]> = [
  ['comfortable', 'Comfortable'],
  ['compact', 'Compact'],
];

/** A menu with the theme and the density of the page. */
export function DisplayMenu() {
  const { theme, density } = useSettings();
  const { open, menu, button, props, panel } = useMenu();
  return (
    <div className="display-menu" ref={menu} {...props}>
      <button ref={button.ref} type="button" {...button.props} aria-label="Display" title="Theme and density">
        <span aria-hidden="true">◐</span>
      </button>
      <div className="card panel" id={panel} hidden={!open}>
        <Choice title="Theme" name="theme" choices={themes} chosen={theme} onChoose={(theme) => changeSettings({ theme })} />
        <Choice title="Density" name="density" choices={densities} chosen={density} onChoose={(density) => changeSettings({ density })} />
      </div>
    </div>
  );
}

interface ChoiceProps<T extends string> {
  readonly title: string;
  readonly name: string;
  readonly choices: ReadonlyArray<readonly [T, string]>;
  readonly chosen: T;
  readonly onChoose: (chosen: T) => void;
}

function Choice<T extends string>({ title, name, choices, chosen, onChoose }: ChoiceProps<T>) {
  return (
    <fieldset>
      <legend>{title}</legend>
      {choices.map(([value, text]) => (
        <label key={value}>
          <input type="radio" name={name} checked={chosen === value} onChange={() => onChoose(value)} /> {text}
        </label>
      ))}
    </fieldset>
  );
}
