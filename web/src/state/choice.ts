import type { Agent } from '../client/agents';
import type { Engine } from '../client/engines';
import { interruptible, turnActive } from './helm';
import { agentName, agentOf, voiceAtWork, voicesThere, type Model } from './view';

/** Who answers, and who could. */
export interface AgentChoice {
  present: Agent;
  /** null where there is nothing to choose from. */
  others: readonly Agent[] | null;
  /** Why none can be chosen now; '' when one can. */
  off: string;
}

/** null where nobody has said who answers, and in deterministic turns, which have no agent. */
export function agentChoice(model: Model): AgentChoice | null {
  const present = model.turns === 'agent' ? presentAgent(model) : null;
  if (!present) return null;
  const all = model.agents?.agents ?? [];
  return { present, others: all.length > 1 ? all : null, off: whyOff(model) };
}

/** Who speaks the answers, and who could; null where there is nothing to choose from. */
export function voiceChoice(model: Model): { present: string; voices: readonly Engine[]; off: string } | null {
  const voices = voicesThere(model);
  return voices.length > 1 ? { present: voiceAtWork(model)!.name, voices, off: whyOff(model) } : null;
}

/** The one of the list; without one, what is known of it elsewhere. */
function presentAgent(model: Model): Agent | null {
  const listed = agentOf(model);
  const name = model.talk.agent || model.engines?.agent?.name;
  if (listed || !name) return listed;
  return { name, label: agentName(model), kind: '', available: true, why: '', tools: [] };
}

function whyOff(model: Model): string {
  const { connection, talk } = model;
  if (connection.state !== 'connected' || talk.sessionId === null || talk.kept) return 'Off: there is no session.';
  return turnActive(model) || interruptible(model) ? 'Off during a turn.' : '';
}
