import type { JSX } from 'preact';

// Drawn in a box of 24, by their strokes.
const shapes = {
  microphone: (
    <>
      <rect x="9" y="3" width="6" height="11" rx="3" />
      <path d="M5 11a7 7 0 0 0 14 0M12 18v3" />
    </>
  ),
  speaker: <path d="M4 9.5v5h3.5L12 18.5v-13L7.5 9.5zM15.5 9a4 4 0 0 1 0 6M18 6.5a8 8 0 0 1 0 11" />,
  struck: <path d="M15 9.5V6a3 3 0 0 0-5.7-1.3M9 9v2a3 3 0 0 0 4.4 2.7M5 11a7 7 0 0 0 10.7 6M18.4 13.8A7 7 0 0 0 19 11M12 18v3M4 4l16 16" />,
  settings: (
    <>
      <path d="M4 7h8.5M17.5 7H20M4 17h2.5M11.5 17H20" />
      <circle cx="15" cy="7" r="2.3" />
      <circle cx="9" cy="17" r="2.3" />
    </>
  ),
  close: <path d="M6 6l12 12M18 6L6 18" />,
  open: <path d="M9 6l6 6-6 6" />,
  stop: <rect x="7" y="7" width="10" height="10" rx="1" />,
  send: <path d="M5 12h13M13 6l6 6-6 6" />,
  keyboard: (
    <>
      <rect x="3" y="6" width="18" height="12" rx="2" />
      <path d="M7 10h.1M11 10h.1M15 10h.1M8 14h8" />
    </>
  ),
  new: <path d="M12 5v14M5 12h14" />,
  save: <path d="M12 4v11M7 10.5l5 5 5-5M5 20h14" />,
  down: <path d="M6 9l6 6 6-6" />,
  diff: <path d="M12 4v8M8 8h8M8 18h8" />,
  code: <path d="M9 7l-5 5 5 5M15 7l5 5-5 5" />,
  find: (
    <>
      <circle cx="10.5" cy="10.5" r="6" />
      <path d="M15 15l5 5" />
    </>
  ),
  page: <path d="M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6" />,
  copy: (
    <>
      <rect x="8" y="8" width="12" height="12" rx="2" />
      <path d="M16 8V6a2 2 0 0 0-2-2H6a2 2 0 0 0-2 2v8a2 2 0 0 0 2 2h2" />
    </>
  ),
  chosen: <path d="M5 12.5l4.5 4.5L19 7.5" />,
  pause: <path d="M9 6v12M15 6v12" />,
  run: <path d="M8 5.5v13l10.5-6.5z" />,
  warning: <path d="M12 4l9 16H3zM12 10v4.5M12 17v.2" />,
} satisfies Record<string, JSX.Element>;

export type IconName = keyof typeof shapes;

export function Icon({ name, small }: { name: IconName; small?: boolean }): JSX.Element {
  return (
    <svg class={small ? 'icon small' : 'icon'} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      {shapes[name]}
    </svg>
  );
}

/** The four stars of the sail. */
export function Brand(): JSX.Element {
  return (
    <svg viewBox="0 0 28 28" aria-hidden="true" focusable="false">
      <path d="M9 3.5 19 9l4.5 10.5L5 24.5z" fill="none" stroke="currentColor" opacity=".65" />
      <g fill="currentColor">
        <circle cx="9" cy="3.5" r="2.4" />
        <circle cx="19" cy="9" r="1.6" />
        <circle cx="23.5" cy="19.5" r="2" />
        <circle cx="5" cy="24.5" r="2.5" />
      </g>
    </svg>
  );
}
