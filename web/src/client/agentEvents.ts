// What @vela/protocol has from the next generation on. When it is there: delete this file, and import ServerEventV2 from '@vela/protocol'.
import type { MessageEnvelopeV2, ServerEventV2 as Generated } from '@vela/protocol';

/** What the agent is doing. */
export type StatusPayload = {
  type: 'status';
  action: string;
  detail?: string;
  /** Unix ms. */
  startedAt?: number;
};

/** Something to look at that came of a tool. The fields beside these go with artifact_type. */
export type ArtifactPayload = {
  type: 'artifact';
  artifact_type: string;
  title?: string;
  segmentId?: string | null;
  [field: string]: unknown;
};

/** A signal of the pipeline, as it is. */
export type SignalPayload = Record<string, unknown>;

export type ServerEventV2 =
  | Generated
  | MessageEnvelopeV2<'status', StatusPayload>
  | MessageEnvelopeV2<'artifact', ArtifactPayload>
  | MessageEnvelopeV2<'signal', SignalPayload>;
