use std::fmt;
use std::time::Duration;

use super::event::{Ending, RateLimitEvent};
use super::report::Report;
use super::{Allowed, RateLimited};
use crate::Name;
use crate::clock::{Clock, Nanos};

/// Follows one call for a layer with listeners and tells them how it goes on. Dropped before its
/// end was told, it tells that the call was dropped.
pub(super) struct Watch {
    report: Report,
    clock: Clock,
    /// When the stage began.
    since: Nanos,
    waited: Duration,
    stage: Stage,
}

enum Stage {
    Queued,
    Running,
    Told,
}

impl Watch {
    /// Begins to follow a call that queues for its turn, if anyone listens.
    pub(super) fn queued(report: &Report, clock: &Clock, now: Nanos) -> Option<Box<Self>> {
        Self::begin(report, clock, now, Stage::Queued)
    }

    /// Begins to follow a call that goes on to the inner service, if anyone listens.
    #[inline]
    pub(super) fn running(report: &Report, clock: &Clock, now: Nanos) -> Option<Box<Self>> {
        Self::begin(report, clock, now, Stage::Running)
    }

    #[inline]
    fn begin(report: &Report, clock: &Clock, now: Nanos, stage: Stage) -> Option<Box<Self>> {
        if report.is_heard() {
            Some(Self::boxed(report, clock, now, stage))
        } else {
            None
        }
    }

    /// Boxed: the future of a layer without listeners, which most are, stays small.
    #[cold]
    fn boxed(report: &Report, clock: &Clock, now: Nanos, stage: Stage) -> Box<Self> {
        Box::new(Self {
            report: report.clone(),
            clock: clock.clone(),
            since: now,
            waited: Duration::ZERO,
            stage,
        })
    }

    /// The call goes on to the inner service.
    pub(super) fn admitted(&mut self, allowed: &Allowed) {
        if let Stage::Queued = self.stage {
            let now = self.clock.now();
            self.waited = now.since(self.since);
            self.since = now;
            self.stage = Stage::Running;
        }
        self.report.tell(&match allowed.held_back() {
            Some(refusal) => RateLimitEvent::Refused {
                refusal,
                shadow: true,
                waited: self.waited,
            },
            None => RateLimitEvent::Admitted {
                name: self.report.name().map(Name::as_str),
                allowed,
                waited: self.waited,
            },
        });
    }

    /// The call, which was queued, is refused.
    pub(super) fn refused(mut self, refusal: &RateLimited) {
        self.stage = Stage::Told;
        self.report.tell(&RateLimitEvent::Refused {
            refusal,
            shadow: false,
            waited: self.clock.now().since(self.since),
        });
    }

    /// The call has ended.
    pub(super) fn ended(mut self, ending: Ending) {
        self.stage = Stage::Told;
        self.complete(ending);
    }

    fn complete(&self, ending: Ending) {
        self.report.tell(&RateLimitEvent::Completed {
            name: self.report.name().map(Name::as_str),
            elapsed: self.clock.now().since(self.since),
            waited: self.waited,
            ending,
        });
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        match self.stage {
            Stage::Told => {}
            Stage::Running => self.complete(Ending::Dropped),
            Stage::Queued => self.report.tell(&RateLimitEvent::Abandoned {
                name: self.report.name().map(Name::as_str),
                waited: self.clock.now().since(self.since),
            }),
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("since", &self.since)
            .field("waited", &self.waited)
            .finish_non_exhaustive()
    }
}
