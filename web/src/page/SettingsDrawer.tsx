import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Engine, Turns } from '../client/engines';
import type { App } from '../state/app';
import { agentChoice, voiceChoice } from '../state/choice';
import { helm, turnActive } from '../state/helm';
import type { Pause, Sensitivity, Theme } from '../state/settings';
import { duration } from '../state/banner';
import { detectorLine, full, nameOf, recogniserLine, tokenWords, voiceLine } from '../state/view';
import { AgentList } from './AgentChoice';
import { Choice, Switch } from './Choice';
import { ConversationTools } from './ConversationTools';
import { Icon } from './Icon';
import { Pennant } from './Pennant';
import { Views } from './Views';

const themes: { value: Theme; word: string }[] = [
  { value: 'system', word: 'System' },
  { value: 'light', word: 'Light' },
  { value: 'dark', word: 'Dark' },
];

const turnsChoices: { value: Turns; word: string }[] = [
  { value: 'agent', word: 'Agent' },
  { value: 'deterministic', word: 'Deterministic' },
];

const sensitivities: { value: Sensitivity; word: string }[] = [
  { value: 'high', word: 'Quiet too' },
  { value: 'usual', word: 'Usual' },
  { value: 'low', word: 'Clear only' },
];

const pauses: { value: Pause; word: string }[] = [
  { value: 'short', word: '0.4 s' },
  { value: 'usual', word: 'Usual' },
  { value: 'long', word: '1.2 s' },
];

export function applyTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Everything here applies at once. The children are what there is beside it where the page is. */
export function SettingsDrawer({ app, inRoom, onClose, children }: { app: App; inRoom?: boolean; onClose(): void; children?: ComponentChildren }): JSX.Element {
  const drawer = useRef<HTMLDivElement>(null);
  useEffect(() => {
    drawer.current?.querySelector<HTMLElement>('button')?.focus();
  }, []);
  useEffect(() => {
    // On the window: a click on a heading leaves the focus nowhere, and Escape closes all the same.
    const keys = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape' || event.defaultPrevented) return;
      event.preventDefault();
      onClose();
    };
    window.addEventListener('keydown', keys);
    return () => window.removeEventListener('keydown', keys);
  }, [onClose]);
  return (
    <>
      <div class="scrim" onClick={onClose} />
      <div id="settings" class="drawer" role="dialog" aria-modal="true" aria-labelledby="settings-title" ref={drawer}>
        <header>
          <h2 id="settings-title">Settings</h2>
          <button type="button" class="button icon-only quiet" aria-label="Close settings" onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
        <div class="groups">
          {!inRoom && app.views.length > 1 && (
            <section class="narrow-only">
              <h3>Views</h3>
              <Views app={app} onChoose={onClose} />
            </section>
          )}
          {app.model.value.turns === 'agent' && app.view.value === 'talk' && (
            <section class="narrow-only">
              <h3>Conversation</h3>
              <ConversationTools app={app} place="settings" />
            </section>
          )}
          {!inRoom && <TurnsGroup app={app} />}
          <EnginesGroup app={app} />
          <TalkingGroup app={app} inRoom={inRoom === true} />
          {children}
          <AppearanceGroup app={app} />
          {!inRoom && (
            <section>
              <h3>Phone</h3>
              <a class="link" id="phone" href="/phone">
                Talk in a LiveKit room
              </a>
            </section>
          )}
          <SessionGroup app={app} />
        </div>
      </div>
    </>
  );
}

function TurnsGroup({ app }: { app: App }): JSX.Element {
  const model = app.model.value;
  const running = turnActive(model);
  return (
    <section>
      <h3>Turns</h3>
      <Choice label="Turns" id="turns" options={turnsChoices} value={model.turns} disabled={running} onChange={(t) => app.setTurns(t)} />
      <p class="note">
        {running
          ? 'Off during a turn.'
          : 'Deterministic turns are fixed. They use no microphone, no recogniser and no agent. Changing this starts a new session.'}
      </p>
    </section>
  );
}

function EngineRow({ kind, engine }: { kind: string; engine: Engine }): JSX.Element {
  const { name, detail } = nameOf(engine.label);
  return (
    <div class="engine" data-available={engine.available ? 'yes' : 'no'}>
      {kind === 'Agent' ? <Pennant identity={engine.name} /> : <Icon name={kind === 'Voice' ? 'speaker' : 'microphone'} />}
      <span>
        {name}
        {detail !== '' && <span class="label">{detail}</span>}
        {engine.why !== '' && !engine.available && <span class="label">{full(engine.why)}</span>}
      </span>
      <span class="label">{engine.available ? 'ready' : 'not there'}</span>
    </div>
  );
}

function EnginesGroup({ app }: { app: App }): JSX.Element {
  const model = app.model.value;
  const { engines } = model;
  const choice = agentChoice(model);
  if (!engines) {
    return (
      <section>
        <h3>Agent and recogniser</h3>
        <p class="note">The gateway did not say what it has.</p>
      </section>
    );
  }
  return (
    <>
      <section id="agent">
        <h3>Agent</h3>
        {choice?.others ? (
          <>
            <AgentList app={app} choice={choice} place="settings" />
            <p class="note">{choice.off || 'The one that is chosen answers from the next turn on.'}</p>
          </>
        ) : engines.agent ? (
          <EngineRow kind="Agent" engine={engines.agent} />
        ) : (
          <p class="note">The gateway has no agent.</p>
        )}
        {!choice?.others && engines.agent?.better && <p class="note">{full(engines.agent.better)}</p>}
      </section>
      <section id="transcriber">
        <h3>Recogniser</h3>
        {engines.ears.map((ear) => (
          <EngineRow key={ear.label} kind="Recogniser" engine={ear} />
        ))}
        <p class="note">{recogniserLine(model) ?? 'The gateway has no recogniser.'}</p>
      </section>
      <VoiceGroup app={app} />
    </>
  );
}

function VoiceGroup({ app }: { app: App }): JSX.Element {
  const model = app.model.value;
  const voices = model.engines?.voices ?? [];
  const choice = voiceChoice(model);
  return (
    <section id="voice">
      <h3>Voice</h3>
      {choice && (
        <label class="field-row">
          <span class="label">Who speaks</span>
          <select
            id="voice-choice"
            class="field"
            value={choice.present}
            disabled={choice.off !== ''}
            onChange={(event) => app.chooseVoice(event.currentTarget.value)}
          >
            {choice.voices.map((v) => (
              <option key={v.name} value={v.name}>
                {v.label}
              </option>
            ))}
          </select>
        </label>
      )}
      {voices
        .filter((voice) => !choice || !voice.available)
        .map((voice) => (
          <EngineRow key={voice.name} kind="Voice" engine={voice} />
        ))}
      <p class="note">
        {voiceLine(model) ?? 'The gateway has no voice.'} {choice?.off}
      </p>
      {voices.some((v) => v.available) && (
        <Switch
          id="speak"
          label="Speak the answers"
          detail="As loud as the system is set."
          on={app.settings.value.speak}
          onChange={(on) => app.change({ speak: on })}
        />
      )}
    </section>
  );
}

function TalkingGroup({ app, inRoom }: { app: App; inRoom: boolean }): JSX.Element {
  const { tapInsteadOfHold, deviceId, sensitivity, pause } = app.settings.value;
  const devices = app.devices.value;
  const { handsFree } = helm(app.model.value);
  return (
    <section>
      <h3>Talking</h3>
      {handsFree.shown && (
        <Switch
          id="hands-free-setting"
          label="Hands-free"
          detail={handsFree.why}
          on={handsFree.on}
          disabled={handsFree.disabled}
          onChange={(on) => app.change({ handsFree: on })}
        />
      )}
      {handsFree.shown && <p class="note">{detectorLine(app.model.value)}</p>}
      {handsFree.shown && !handsFree.disabled && !inRoom && (
        <>
          <div class="field-row">
            <span class="label">Hands-free hears</span>
            <Choice
              label="Hands-free hears"
              id="sensitivity"
              options={sensitivities}
              value={sensitivity}
              onChange={(value) => app.change({ sensitivity: value })}
            />
          </div>
          <div class="field-row">
            <span class="label">A silence ends what you say after</span>
            <Choice label="A silence ends what you say after" id="pause" options={pauses} value={pause} onChange={(value) => app.change({ pause: value })} />
          </div>
        </>
      )}
      {devices.length > 1 && (
        <label class="field-row">
          <span class="label">Microphone</span>
          <select
            id="device"
            class="field"
            value={deviceId}
            onChange={(event) => app.change({ deviceId: event.currentTarget.value })}
          >
            <option value="">As the system chooses</option>
            {devices.map((d) => (
              <option key={d.id} value={d.id}>
                {d.label}
              </option>
            ))}
          </select>
        </label>
      )}
      <Switch
        id="tap"
        label="Tap instead of hold"
        detail="One tap starts, the next one sends."
        on={tapInsteadOfHold}
        onChange={(on) => app.change({ tapInsteadOfHold: on })}
      />
    </section>
  );
}

function AppearanceGroup({ app }: { app: App }): JSX.Element {
  return (
    <section>
      <h3>Appearance</h3>
      <Choice
        label="Appearance"
        id="theme"
        options={themes}
        value={app.settings.value.theme}
        onChange={(theme) => {
          app.change({ theme });
          applyTheme(theme);
        }}
      />
    </section>
  );
}

function SessionGroup({ app }: { app: App }): JSX.Element {
  const { talk, connection, turns } = app.model.value;
  const { keptFor } = app;
  return (
    <section>
      <h3>Session</h3>
      <dl class="evidence">
        <dt>Protocol</dt>
        <dd>{turns === 'agent' ? 'version 2' : 'version 1'}</dd>
        <dt>Session</dt>
        <dd id="session-id">{talk.sessionId ?? 'none'}</dd>
        {keptFor !== null && (
          <>
            <dt>Kept for</dt>
            <dd>{duration(keptFor)} after the connection is lost</dd>
          </>
        )}
        {talk.spent && (
          <>
            <dt>Used</dt>
            <dd id="spent">{tokenWords(talk.spent)}, in this conversation</dd>
          </>
        )}
      </dl>
      <button type="button" class="button" id="end-session" disabled={connection.state !== 'connected'} onClick={() => app.endSession()}>
        End session
      </button>
    </section>
  );
}
