import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Agent } from '../client/agents';
import type { App } from '../state/app';
import { agentChoice, type AgentChoice as Choice } from '../state/choice';
import { full, identityOf, nameOf } from '../state/view';
import { Icon } from './Icon';
import { Pennant } from './Pennant';

/** Who answers, in the bar; where there are others, a list to choose from. */
export function AgentChoice({ app }: { app: App }): JSX.Element | null {
  const choice = agentChoice(app.model.value);
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const shown = open && choice?.others != null && choice.off === '';
  // At once: the next stroke is for the list already.
  useLayoutEffect(() => {
    if (!shown) return;
    root.current?.querySelector<HTMLElement>('[aria-selected="true"], [role="option"]')?.focus();
    const outside = ({ target }: Event): void => {
      if (!root.current?.contains(target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', outside);
    document.addEventListener('focusin', outside);
    return () => {
      document.removeEventListener('pointerdown', outside);
      document.removeEventListener('focusin', outside);
    };
  }, [shown]);
  // A turn that begins takes the list away.
  useEffect(() => {
    if (choice?.off) setOpen(false);
  }, [choice?.off]);
  if (!choice) return null;
  const name = (
    <>
      <Pennant identity={identityOf(app.model.value)} />
      <span class="name">{nameOf(choice.present.label).name}</span>
    </>
  );
  if (!choice.others) {
    return (
      <div class="agent-choice" id="agent-present">
        <span class="pick">{name}</span>
      </div>
    );
  }
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <div class="agent-choice" ref={root}>
      <button
        id="agent-choice"
        ref={button}
        type="button"
        class="button pick"
        aria-haspopup="listbox"
        aria-expanded={shown}
        aria-label={`Agent: ${nameOf(choice.present.label).name}`}
        aria-describedby="agent-choice-why"
        disabled={choice.off !== ''}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => {
          if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
          event.preventDefault();
          setOpen(true);
        }}
      >
        {name}
        <Icon name="down" small />
      </button>
      <span class="unseen" id="agent-choice-why">
        {choice.off || 'Who answers from the next turn on.'}
      </span>
      {shown && (
        <div
          class="pick-list"
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return;
            event.preventDefault();
            close();
          }}
        >
          <AgentList app={app} choice={choice} place="bar" onChosen={close} />
        </div>
      )}
    </div>
  );
}

/** The agents: arrows move, Enter and Space choose. One that is not there can be reached, so that one hears why. */
export function AgentList(props: { app: App; choice: Choice; place: 'bar' | 'settings'; onChosen?(): void }): JSX.Element {
  const { app, choice, place, onChosen } = props;
  const { present, off } = choice;
  const others = choice.others ?? [];
  const take = (agent: Agent): void => {
    if (!agent.available || off !== '') return;
    app.chooseAgent(agent.name);
    onChosen?.();
  };
  const move = (event: KeyboardEvent): void => {
    const options = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[role="option"]')];
    const at = options.indexOf(document.activeElement as HTMLElement);
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      if (!event.repeat && others[at]) take(others[at]);
      return;
    }
    const to: Record<string, number> = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: options.length - 1 };
    const index = to[event.key];
    if (index === undefined) return;
    event.preventDefault();
    options[(index + options.length) % options.length]!.focus();
  };
  const listed = others.some((a) => a.name === present.name);
  return (
    <div class="agents" role="listbox" id={`agents-${place}`} aria-label="Agent" aria-disabled={off !== ''} onKeyDown={move}>
      {others.map((agent, i) => {
        const { name, detail } = nameOf(agent.label);
        const isPresent = agent.name === present.name;
        return (
          <div
            key={agent.name}
            class="agent-option"
            role="option"
            data-agent={agent.name}
            aria-selected={isPresent}
            aria-disabled={!agent.available || off !== ''}
            tabIndex={isPresent || (!listed && i === 0) ? 0 : -1}
            onClick={() => take(agent)}
          >
            <Pennant identity={identityOf(app.model.value, agent.name)} />
            <span>
              <span class="name">{name}</span>
              {detail !== '' && <span class="label">{detail}</span>}
              <span class="label">{agent.available ? toolWords(agent) : `Not there${agent.why ? `: ${full(agent.why)}` : '.'}`}</span>
            </span>
            {isPresent && <Icon name="chosen" small />}
          </div>
        );
      })}
    </div>
  );
}

const named = 4;

function toolWords({ tools }: Agent): string {
  if (tools.length === 0) return 'No tools';
  const more = tools.length - named;
  return `Tools: ${tools.slice(0, named).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
