use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use super::shared::{Core, Shared};
use super::standing::Way;
use super::state::Machine;
use crate::clock::{Nanos, Sleep};
use crate::sync::Mutex;

/// Wakes the ready queue when time alone changes what a breaker decides.
///
/// One timer for all who wait: with one each, all of them would wake for a few places. It is set
/// by those who wait, whose runtime it needs, and wakes the queue itself.
#[derive(Default)]
pub(super) struct Alarm(Mutex<Option<Pin<Box<Sleep>>>>);

impl Alarm {
    /// Sets the alarm for the next change that time brings; ready where it has come by now.
    /// Pending for ever where there is none.
    pub(super) fn poll(&self, shared: &Arc<Shared>) -> Poll<()> {
        let waker = Waker::from(Arc::new(Ring(Arc::downgrade(shared))));
        let is_over = {
            // The circuit is looked at under the lock too: a look from before another set the
            // alarm would set it back to a time that stands no more.
            let mut sleep = self.0.lock();
            let now = shared.clock.now();
            let (waits, next) = shared.view(now, |core, machine| {
                (core.must_wait(machine, now), machine.next_ready(now))
            });
            if !waits {
                return Poll::Ready(());
            }
            let Some(deadline) = next else {
                return Poll::Pending;
            };
            // Set anew by each who waits: the runtime of the one before may be gone.
            let fresh = shared.clock.sleep_until(deadline);
            let sleep = match &mut *sleep {
                Some(sleep) => {
                    sleep.as_mut().set(fresh);
                    sleep
                }
                unset => unset.insert(Box::pin(fresh)),
            };
            // Polled under the lock, which none of what it calls takes: it registers, and a timer
            // that is over by now says so and wakes nobody.
            let polled = sleep.as_mut().poll(&mut Context::from_waker(&waker));
            polled.is_ready()
        };
        if is_over {
            // The alarm that this one replaced will not ring any more, and those who wait for it
            // are to be woken nonetheless.
            shared.wake_ready_queue();
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

/// The alarm's waker. Weak, or a breaker with its alarm set would hold itself.
struct Ring(Weak<Shared>);

impl Wake for Ring {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.0.upgrade() {
            shared.wake_ready_queue();
        }
    }
}

impl Core {
    /// Whether an instance that wants to answer ready must wait in the state that `machine` is in.
    fn must_wait(&self, machine: &Machine, now: Nanos) -> bool {
        !machine.commands().shadow() && machine.would_wait(now, self.rules())
    }
}

impl Shared {
    /// Whether an instance that wants to answer ready must wait. Looks at one word while closed.
    #[inline]
    pub(super) fn must_wait(&self) -> bool {
        !self.gate.standing().passes() && self.must_wait_otherwise()
    }

    #[inline(never)]
    fn must_wait_otherwise(&self) -> bool {
        match self.gate.standing().way() {
            Way::Pass | Way::PassUncounted => false,
            Way::RefuseForced => true,
            Way::RefuseInTime | Way::RefuseForEver | Way::Ask => {
                let now = self.clock.now();
                self.view(now, |core, machine| core.must_wait(machine, now))
            }
        }
    }

    /// Sets the alarm where others wait behind a place that was just taken: the one that told them
    /// of the place has rung, and they would sleep through its deadline.
    pub(super) fn watch_for_those_behind(self: &Arc<Self>) {
        if !self.queue.is_empty() {
            // Ready: there is room left, or they have been woken.
            let _ = self.alarm.poll(self);
        }
    }

    /// Wakes as many of those who wait as may go on now. While none may it wakes one, who sets the
    /// alarm.
    fn wake_ready_queue(&self) {
        let now = self.clock.now();
        let places = self.view(now, |core, machine| machine.room(now, core.rules()));
        self.queue.notify(places.max(1));
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Alarm")
    }
}

#[cfg(all(test, not(sluice_loom)))]
mod tests {
    use std::time::Duration;

    use crate::circuit_breaker::{CircuitBreaker, CircuitPolicy};
    use crate::clock::Clock;

    /// As where the time comes between the look that found the circuit open and the alarm.
    #[test]
    fn a_time_that_has_come_since_is_not_slept_through() {
        let time = Clock::manual();
        let policy = CircuitPolicy::builder().consecutive(1).build().unwrap();
        let breaker = CircuitBreaker::builder("tested", policy).clock(&time);
        let breaker = breaker.build();
        let shared = breaker.arc();
        breaker.try_acquire().expect("closed").failure();
        assert!(shared.alarm.poll(shared).is_pending());
        time.advance(Duration::from_secs(60));
        assert!(shared.alarm.poll(shared).is_ready());
        breaker.force_open();
        assert!(shared.alarm.poll(shared).is_pending(), "no time ends it");
    }
}
