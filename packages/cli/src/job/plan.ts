import type { Task, TaskAttempt } from "./task-folder.ts";

/** One sandbox of the job: an attempt at a task. */
export interface PlannedRun {
  /** From 0, in order of tasks and attempts. */
  readonly index: number;
  readonly task: Task;
  readonly attempt: TaskAttempt;
}

/** What happens: each task with `attemptsPerTask` attempts, taken in order and from the front again when there are fewer. */
export function planRuns(tasks: readonly Task[], attemptsPerTask: number | undefined): readonly PlannedRun[] {
  const runs = tasks.flatMap((task) => {
    const count = attemptsPerTask ?? task.attempts.length;
    return Array.from({ length: count }, (_, number) => ({
      task,
      attempt: task.attempts[number % task.attempts.length],
    }));
  });
  return runs.flatMap(({ task, attempt }, index) =>
    attempt === undefined ? [] : [{ index, task, attempt }],
  );
}
