// SPDX-License-Identifier: Apache-2.0
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Loaded<T> {
  data: T | null; // the newest answer to this question; kept while it is asked again
  last: T | null; // the newest answer to any question: to be shown as old until data is there
  error: Error | null; // of the newest question
  loading: boolean;
  reload(): void;
}

/**
 * Asks when about changes, or after reload. An older question's answer never takes a newer one's
 * place: it is cancelled. An error takes the answer to another question away, but not the one
 * to the same: a refresh that fails leaves what is known, with the error beside it.
 */
export function useLoad<T>(
  ask: ((signal: AbortSignal) => Promise<T>) | null,
  subject: string,
  refresh = 0,
): Loaded<T> {
  const [answer, setAnswer] = useState<{ subject: string; data: T | null; error: Error | null }>({
    subject,
    data: null,
    error: null,
  });
  const [loading, setLoading] = useState(false);
  const [again, setAgain] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  const asks = ask !== null;

  useEffect(() => {
    if (!asks || !latest.current) return;
    const abort = new AbortController();
    setLoading(true);
    latest.current(abort.signal).then(
      (data) => {
        if (abort.signal.aborted) return;
        setAnswer({ subject, data, error: null });
        setLoading(false);
      },
      (error) => {
        if (abort.signal.aborted) return;
        const e = error instanceof Error ? error : new Error(String(error));
        setAnswer((old) => ({
          subject,
          data: old.subject === subject ? old.data : null,
          error: e,
        }));
        setLoading(false);
      },
    );
    return () => abort.abort();
  }, [subject, refresh, again, asks]);

  const reload = useCallback(() => setAgain((n) => n + 1), []);
  const current = answer.subject === subject && asks;
  return {
    data: current ? answer.data : null,
    last: answer.data,
    error: current ? answer.error : null,
    loading: loading || (asks && !current),
    reload,
  };
}
