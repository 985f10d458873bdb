import type { JSX } from 'preact';

interface Option<T extends string> {
  value: T;
  word: string;
}

/** One of a few: a single tab stop, arrow keys move the choice. */
export function Choice<T extends string>(props: {
  label: string;
  id: string;
  options: readonly Option<T>[];
  value: T;
  disabled?: boolean;
  onChange(value: T): void;
}): JSX.Element {
  const { label, id, options, value, disabled = false, onChange } = props;
  const move = (event: KeyboardEvent): void => {
    const at = options.findIndex((o) => o.value === value);
    const to: Record<string, number> = {
      ArrowLeft: at - 1,
      ArrowUp: at - 1,
      ArrowRight: at + 1,
      ArrowDown: at + 1,
      Home: 0,
      End: options.length - 1,
    };
    const index = to[event.key];
    if (index === undefined || disabled) return;
    event.preventDefault();
    const next = options[(index + options.length) % options.length]!;
    onChange(next.value);
    document.getElementById(`${id}-${next.value}`)?.focus();
  };
  return (
    <div class="choice" role="radiogroup" id={id} aria-label={label} aria-disabled={disabled} onKeyDown={move}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          role="radio"
          id={`${id}-${option.value}`}
          aria-checked={option.value === value}
          tabIndex={option.value === value ? 0 : -1}
          disabled={disabled && option.value !== value}
          onClick={() => onChange(option.value)}
        >
          {option.word}
        </button>
      ))}
    </div>
  );
}

export function Switch(props: { id: string; label: string; detail: string; on: boolean; disabled?: boolean; onChange(on: boolean): void }): JSX.Element {
  const { id, label, detail, on, disabled = false, onChange } = props;
  return (
    <div class="switch-row">
      <span>
        <span id={`${id}-label`}>{label}</span>
        <span class="label" id={`${id}-detail`}>
          {detail}
        </span>
      </span>
      <button
        type="button"
        id={id}
        class="switch"
        role="switch"
        aria-checked={on}
        aria-labelledby={`${id}-label`}
        aria-describedby={`${id}-detail`}
        disabled={disabled}
        onClick={() => onChange(!on)}
      >
        <i />
      </button>
    </div>
  );
}
