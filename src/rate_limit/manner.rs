use std::time::Duration;

use super::event::RateLimitEvent;
use super::report::Report;
use super::watch::Watch;
use super::{Allowed, Annotate, RateLimited};
use crate::clock::{Clock, Nanos};
use crate::reject::Reject;

/// How a layer tells what was decided: to the caller, on the response, to listeners.
#[derive(Clone, Debug)]
pub(super) struct Manner<M, A> {
    pub(super) mode: M,
    pub(super) annotate: A,
    pub(super) report: Report,
}

impl<M, A> Manner<M, A> {
    /// Follows a call that was admitted at once.
    #[inline]
    pub(super) fn admitted<Response>(
        &self,
        allowed: Allowed,
        clock: &Clock,
        now: Nanos,
    ) -> (Option<A::Note>, Option<Box<Watch>>)
    where
        A: Annotate<Response>,
    {
        if self.report.is_heard() {
            return self.admitted_heard(allowed, clock, now);
        }
        (Some(self.annotate.admitted(&allowed)), None)
    }

    /// As [`admitted`](Self::admitted), with listeners. Takes the admission by value: where there
    /// are none, nothing refers to it and it is not written out.
    #[cold]
    fn admitted_heard<Response>(
        &self,
        allowed: Allowed,
        clock: &Clock,
        now: Nanos,
    ) -> (Option<A::Note>, Option<Box<Watch>>)
    where
        A: Annotate<Response>,
    {
        let mut watch = Watch::running(&self.report, clock, now);
        if let Some(watch) = &mut watch {
            watch.admitted(&allowed);
        }
        (Some(self.annotate.admitted(&allowed)), watch)
    }

    /// Follows a call that only shadow mode lets through.
    #[cold]
    pub(super) fn let_through(
        &self,
        mut refusal: RateLimited,
        clock: &Clock,
        now: Nanos,
    ) -> Option<Box<Watch>> {
        self.report.count_shadowed();
        self.name(&mut refusal);
        self.report.tell(&RateLimitEvent::Refused {
            refusal: &refusal,
            shadow: true,
            waited: Duration::ZERO,
        });
        Watch::running(&self.report, clock, now)
    }

    /// What becomes of a call that is refused where a name, a listener or shadow mode is set.
    ///
    /// Takes the refusal by value, and apart: where nothing is set, nothing refers to it, and it
    /// is written once, where it stays.
    #[cold]
    pub(super) fn refuse_or_let_through<Request, Response, E>(
        &self,
        request: &Request,
        refusal: RateLimited,
        clock: &Clock,
        now: Nanos,
    ) -> Result<Option<Box<Watch>>, Result<Response, M::Error>>
    where
        M: Reject<Request, RateLimited, Response, E>,
        A: Annotate<Response>,
    {
        if self.report.is_shadow() {
            return Ok(self.let_through(refusal, clock, now));
        }
        Err(self.refuse(request, refusal))
    }

    /// Refuses a call at once.
    pub(super) fn refuse<Request, Response, E>(
        &self,
        request: &Request,
        mut refusal: RateLimited,
    ) -> Result<Response, M::Error>
    where
        M: Reject<Request, RateLimited, Response, E>,
        A: Annotate<Response>,
    {
        self.name(&mut refusal);
        if self.report.is_heard() {
            self.report.tell(&RateLimitEvent::Refused {
                refusal: &refusal,
                shadow: false,
                waited: Duration::ZERO,
            });
        }
        self.answer(request, refusal)
    }

    /// Refuses a call that had queued.
    pub(super) fn refuse_queued<Request, Response, E>(
        &self,
        request: &Request,
        mut refusal: RateLimited,
        watch: Option<Box<Watch>>,
    ) -> Result<Response, M::Error>
    where
        M: Reject<Request, RateLimited, Response, E>,
        A: Annotate<Response>,
    {
        self.name(&mut refusal);
        if let Some(watch) = watch {
            watch.refused(&refusal);
        }
        self.answer(request, refusal)
    }

    /// Turns a refusal into what the caller gets.
    #[inline(always)] // else its two callers share one, and every refusal goes through memory
    pub(super) fn answer<Request, Response, E>(
        &self,
        request: &Request,
        refusal: RateLimited,
    ) -> Result<Response, M::Error>
    where
        M: Reject<Request, RateLimited, Response, E>,
        A: Annotate<Response>,
    {
        let note = self.annotate.refused(&refusal);
        let mut answer = self.mode.refuse(request, refusal);
        if let Ok(response) = &mut answer {
            A::write(note, response);
        }
        answer
    }

    /// The layer's name stands for the limiter's own.
    #[inline]
    fn name(&self, refusal: &mut RateLimited) {
        if let Some(name) = self.report.name() {
            refusal.set_name(name.clone());
        }
    }
}
