import type { JSX } from 'preact';

// Who speaks is told by colour and by shape. The colour comes from the style, by data-identity.
export const shapes: Record<string, JSX.Element> = {
  claude: <path d="M2 1l17 6L2 13z" fill="currentColor" />,
  openclaw: <path d="M2 1h17l-5 6 5 6H2z" fill="currentColor" />,
  lmstudio: (
    <>
      <path d="M2.75 1.75h15.5v10.5H2.75z" fill="none" stroke="currentColor" stroke-width="1.5" />
      <path d="M8 2h5v10H8z" fill="currentColor" />
    </>
  ),
  ollama: (
    <>
      <path d="M2.75 1.75h15.5v10.5H2.75z" fill="none" stroke="currentColor" stroke-width="1.5" />
      <circle cx="10.5" cy="7" r="3" fill="currentColor" />
    </>
  ),
};

export const plain = <path d="M2.75 1.75 18 7 2.75 12.25z" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round" />;

export function Pennant({ identity, hoisted }: { identity: string; hoisted?: boolean }): JSX.Element {
  return (
    <svg class={hoisted ? 'pennant hoisted' : 'pennant'} data-identity={identity} viewBox="0 0 20 14" aria-hidden="true" focusable="false">
      <path d="M1 0v14" stroke="currentColor" stroke-width="1.5" />
      {shapes[identity] ?? plain}
    </svg>
  );
}
