use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::source::Source;
use super::{Clock, ManualClock, Nanos};

pin_project! {
    /// Resolves when its clock reads the deadline or later.
    ///
    /// One tokio timer, or one entry in the list of a manual clock. Dropping it leaves nothing
    /// behind.
    #[must_use = "futures do nothing unless polled"]
    pub(crate) struct Sleep {
        clock: Clock,
        deadline: Nanos,
        #[pin]
        timer: Timer,
    }
}

pin_project! {
    #[project = TimerProj]
    enum Timer {
        Tokio { #[pin] sleep: tokio::time::Sleep },
        Manual { entry: ManualEntry },
    }
}

/// A place in the list of a manual clock, given back on drop.
struct ManualEntry {
    manual: ManualClock,
    id: Option<u64>,
}

impl Drop for ManualEntry {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.manual.forget(id);
        }
    }
}

impl Sleep {
    pub(super) fn until(clock: &Clock, deadline: Nanos) -> Self {
        let timer = match &clock.0 {
            Source::Manual(manual) => Timer::Manual {
                entry: ManualEntry {
                    manual: manual.clone(),
                    id: None,
                },
            },
            _ => Timer::Tokio {
                sleep: tokio::time::sleep(deadline.since(clock.now())),
            },
        };
        Self {
            clock: clock.clone(),
            deadline,
            timer,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        loop {
            match this.timer.as_mut().project() {
                TimerProj::Tokio { mut sleep } => {
                    ready!(sleep.as_mut().poll(cx));
                    let left = this.deadline.since(this.clock.now());
                    if left.is_zero() {
                        return Poll::Ready(());
                    }
                    // The timer counts another clock than ours, and is capped in length.
                    sleep.set(tokio::time::sleep(left));
                }
                TimerProj::Manual { entry } => {
                    if this.clock.now() >= *this.deadline {
                        return Poll::Ready(());
                    }
                    entry.id = Some(entry.manual.register(entry.id, *this.deadline, cx.waker()));
                    // Looked at once more: the clock may have moved between the two lines above.
                    if this.clock.now() < *this.deadline {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn moving_a_manual_clock_wakes_its_sleepers_at_their_deadline_and_not_before() {
        let time = Clock::manual();
        let deadline = Nanos::from(MINUTE);
        let mut sleep = tokio_test::task::spawn(Clock::from(&time).sleep_until(deadline));
        tokio_test::assert_pending!(sleep.poll());
        time.advance(MINUTE - Duration::from_nanos(1));
        assert!(!sleep.is_woken(), "one nanosecond early is early");
        time.advance(Duration::from_nanos(1));
        assert!(sleep.is_woken(), "the deadline itself wakes");
        tokio_test::assert_ready!(sleep.poll());
    }

    #[test]
    fn a_dropped_sleeper_is_not_woken_and_leaves_no_entry() {
        let time = Clock::manual();
        let mut sleep =
            tokio_test::task::spawn(Clock::from(&time).sleep_until(Nanos::from(MINUTE)));
        tokio_test::assert_pending!(sleep.poll());
        drop(sleep);
        let mut second = tokio_test::task::spawn(Clock::from(&time).sleep_until(Nanos::MAX));
        tokio_test::assert_pending!(second.poll());
        time.advance(MINUTE);
        assert!(!second.is_woken(), "its own deadline has not come");
    }

    #[tokio::test(start_paused = true)]
    async fn the_default_clock_sleeps_on_paused_time() {
        let clock = Clock::tokio();
        clock.sleep_until(Nanos::from(MINUTE)).await;
        assert!(
            clock.now() >= Nanos::from(MINUTE),
            "woken at the deadline or after"
        );
    }

    #[test]
    fn the_default_clock_reads_without_a_runtime() {
        let clock = Clock::tokio();
        assert!(clock.now() <= clock.now(), "readings never go back");
    }
}
