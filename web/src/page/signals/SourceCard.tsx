import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Answer } from '../../client/ask';
import type { Source } from '../../client/sources';
import { rateWords } from '../../state/meter';
import { identityOf } from '../../state/origin';
import type { App } from '../../state/app';
import { mostFollowed } from '../../state/settings';
import { plain } from '../../state/plain';
import type { Watch } from '../../state/watch';
import { Flag } from './Flag';

const claudeCode = 'local:claude-code';

/** One source: how it is, what it has, and what can be done with it. */
export function SourceCard({ app, watch, source }: { app: App; watch: Watch; source: Source }): JSX.Element {
  const open = useSignal(false);
  const failed = useSignal('');
  const asking = useSignal(false);
  void watch.counts.value; // its rate
  const { id, name, state, error } = source;
  const { rate, history } = watch.pulse(id);
  const away = state === 'unavailable';
  const on = state === 'connected' || state === 'connecting';
  const label = `source-${domId(id)}`;
  const act = (asked: Promise<Answer>): void => {
    failed.value = '';
    void watch.act(asked).then((words) => (failed.value = words));
  };
  const consent = watch.consent.state.value;
  const hooks = id === claudeCode;
  const question = hooks && state === 'disconnected' && (consent === 'unasked' || asking.value);
  const connect = (): void => {
    if (hooks && consent !== 'always' && consent !== 'by hand') {
      asking.value = true;
      return;
    }
    if (hooks) watch.consent.set('always');
    act(watch.sources.connect(id));
  };
  const disconnect = (): void => {
    // Who takes it off does not want it back by itself.
    if (hooks) watch.consent.set('by hand');
    act(watch.sources.disconnect(id));
  };
  const remove = (): void => {
    act(watch.sources.remove(id));
    unfollow(app, id);
  };
  return (
    <li class="source" id={label} data-state={state} data-identity={identityOf(source)} data-open={open.value || undefined}>
      <button type="button" class="head" aria-expanded={open.value} aria-controls={`${label}-more`} disabled={away} aria-describedby={`${label}-sub`} onClick={() => (open.value = !open.value)}>
        <Flag identity={identityOf(source)} />
        <span class="name">
          <bdi>{plain(name)}</bdi>
        </span>
        <span class="state">
          <i class="dot" data-look={state} />
          {state}
        </span>
      </button>
      <p class="sub" id={`${label}-sub`}>
        {away ? `${source.protocol}, not there now` : `${source.protocol}${source.models.length > 0 ? `, ${models(source)}` : ''}, ${rateWords(Math.max(rate, source.perSecond))} signals/s`}
      </p>
      {state === 'connected' && <Pulse history={history} />}
      {error !== '' && <p class="wrong">{plain(error)}</p>}
      {failed.value !== '' && (
        <p class="wrong" role="alert">
          {plain(failed.value)}
        </p>
      )}
      {question ? (
        <ConsentQuestion
          onAnswer={(yes) => {
            asking.value = false;
            watch.consent.set(yes ? 'always' : 'no');
            if (yes) act(watch.sources.connect(id));
          }}
        />
      ) : (
        !away && (
          <div class="acts">
            {!on && (
              <button type="button" class="button" onClick={connect}>
                Connect
              </button>
            )}
            {source.models.length > 0 && <ModelChoice source={source} onChoose={(model) => act(watch.sources.chooseModel(id, model))} />}
          </div>
        )
      )}
      {open.value && (
        <div class="more" id={`${label}-more`}>
          {source.url !== '' && (
            <p class="url">
              <bdi>{plain(source.url)}</bdi>
            </p>
          )}
          {takesKey(source) && <KeyForm watch={watch} source={source} act={act} />}
          <Follow app={app} source={source} />
          {prompts(source) && <PromptForm watch={watch} source={source} act={act} />}
          <div class="acts">
            {on && (
              <button type="button" class="button" onClick={disconnect}>
                Disconnect
              </button>
            )}
            {!source.local && (
              <button type="button" class="button quiet" onClick={remove}>
                Remove
              </button>
            )}
          </div>
        </div>
      )}
    </li>
  );
}

/** Has the conversation show what this source's agent does, beside the own one. */
function Follow({ app, source: { id, name } }: { app: App; source: Source }): JSX.Element | null {
  const { follow } = app.settings.value;
  const on = Object.hasOwn(follow, id);
  const flip = (): void => (on ? unfollow(app, id) : app.change({ follow: { ...follow, [id]: name } }));
  const off =
    app.model.value.turns !== 'agent' ? 'Off: an agent has to answer in the conversation.'
    : !on && Object.keys(follow).length >= mostFollowed ? `Off: ${mostFollowed} sources are shown already.`
    : '';
  return (
    <div class="acts">
      <button type="button" class="button" aria-pressed={on} disabled={off !== ''} aria-describedby={`source-${domId(id)}-follow`} onClick={flip}>
        {on ? 'Shown in the conversation' : 'Show in the conversation'}
      </button>
      <span class="sub" id={`source-${domId(id)}-follow`}>
        {off}
      </span>
    </div>
  );
}

function unfollow(app: App, id: string): void {
  const { [id]: name, ...others } = app.settings.peek().follow;
  if (name !== undefined) app.change({ follow: others });
}

/** An id may have what no element's id may. */
function domId(id: string): string {
  return id.replace(/[^A-Za-z0-9_-]/g, '-');
}

function models({ models: all, model }: Source): string {
  return model !== '' ? plain(model) : all.length === 1 ? '1 model' : `${all.length} models`;
}

function takesKey({ needsKey, hasKey, local, protocol }: Source): boolean {
  return protocol !== 'midi' && (needsKey || hasKey || !local);
}

const prompts = ({ protocol, state }: Source): boolean => (protocol === 'openai' || protocol === 'anthropic') && state === 'connected';

function ConsentQuestion({ onAnswer }: { onAnswer(yes: boolean): void }): JSX.Element {
  return (
    <div class="consent" role="group" aria-label="Connect Claude Code">
      <p>
        To hear Claude Code, Vela writes hooks into this project's <code>.claude/settings.local.json</code>. Disconnecting takes them out again, and so does stopping the gateway.
      </p>
      <div class="acts">
        <button type="button" class="button solid" onClick={() => onAnswer(true)}>
          Write them and connect
        </button>
        <button type="button" class="button" onClick={() => onAnswer(false)}>
          Not now
        </button>
      </div>
    </div>
  );
}

function ModelChoice({ source, onChoose }: { source: Source; onChoose(model: string): void }): JSX.Element {
  return (
    <select class="field" aria-label={`Model of ${source.name}`} value={source.model} onChange={({ currentTarget }) => onChoose(currentTarget.value)}>
      {source.model === '' && <option value="">Choose a model</option>}
      {source.models.map((model) => (
        <option key={model} value={model}>
          {plain(model)}
        </option>
      ))}
    </select>
  );
}

/** What is typed here goes to the gateway, and never comes back. */
function KeyForm({ watch, source, act }: { watch: Watch; source: Source; act(asked: Promise<Answer>): void }): JSX.Element {
  const typed = useSignal('');
  const { id, name, hasKey, tokenAutoFilled, protocol, local } = source;
  return (
    <form
      class="key"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed.value.trim() === '') return;
        act(watch.sources.setKey(id, typed.value.trim()));
        typed.value = '';
      }}
    >
      {tokenAutoFilled && <span class="tag ok">token auto-filled</span>}
      <input
        class="field"
        type="password"
        autocomplete="off"
        spellcheck={false}
        aria-label={`Key of ${name}`}
        placeholder={hasKey ? 'A key is kept' : 'Key'}
        value={typed.value}
        onInput={({ currentTarget }) => (typed.value = currentTarget.value)}
      />
      <div class="acts">
        <button type="submit" class="button" disabled={typed.value.trim() === ''} aria-describedby={`source-${domId(id)}-key`}>
          {hasKey ? 'Replace' : 'Save'}
        </button>
        {protocol === 'openclaw' && local && (
          <button type="button" class="button" onClick={() => act(watch.sources.pasteKey(id))}>
            Paste from config
          </button>
        )}
        {hasKey && (
          <button type="button" class="button quiet" onClick={() => act(watch.sources.setKey(id, ''))}>
            Forget it
          </button>
        )}
      </div>
      <span class="unseen" id={`source-${domId(id)}-key`}>
        {typed.value.trim() === '' ? 'Off: no key is typed.' : ''}
      </span>
    </form>
  );
}

function PromptForm({ watch, source, act }: { watch: Watch; source: Source; act(asked: Promise<Answer>): void }): JSX.Element {
  const typed = useSignal('');
  const why = `source-${domId(source.id)}-prompt`;
  return (
    <form
      class="prompt"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed.value.trim() === '') return;
        act(watch.sources.prompt(source.id, typed.value.trim()));
        typed.value = '';
      }}
    >
      <textarea class="field" rows={2} maxLength={8000} aria-label={`Prompt for ${source.name}`} placeholder="Ask it something" value={typed.value} onInput={({ currentTarget }) => (typed.value = currentTarget.value)} />
      <div class="acts">
        <button type="submit" class="button" disabled={typed.value.trim() === ''} aria-describedby={why}>
          Send
        </button>
        <button type="button" class="button stop" onClick={() => act(watch.sources.stop(source.id))}>
          Stop
        </button>
      </div>
      <span class="unseen" id={why}>
        {typed.value.trim() === '' ? 'Off: nothing is typed.' : ''}
      </span>
    </form>
  );
}

/** Signals in each of the last seconds. */
function Pulse({ history }: { history: readonly number[] }): JSX.Element {
  const most = Math.max(4, ...history);
  return (
    <svg class="pulse" viewBox="0 0 60 16" aria-hidden="true" focusable="false">
      {history.map((n, i) => (
        <rect key={i} x={i * 4} y={16 - (n / most) * 16} width="3" height={(n / most) * 16} fill="currentColor" />
      ))}
    </svg>
  );
}
