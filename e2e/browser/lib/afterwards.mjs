const stacks = new WeakMap();

/** Runs `undo` when the test is over: last first, so that a page is gone before the gateway that it talks to. */
export function afterwards(t, undo) {
  let stack = stacks.get(t);
  if (!stack) {
    stacks.set(t, (stack = []));
    t.after(async () => {
      const failures = [];
      for (const run of stack.reverse()) {
        try {
          await run();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    });
  }
  stack.push(undo);
}
