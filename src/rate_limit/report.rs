use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::event::RateLimitEvent;
use crate::Name;

type Listener = dyn Fn(&RateLimitEvent<'_>) + Send + Sync;

/// What a layer was told beyond limiting: its name, its listeners, shadow mode. Most layers have
/// none of it and hold one empty pointer.
#[derive(Clone, Default)]
pub(super) struct Report(Option<Arc<Reporting>>);

struct Reporting {
    name: Option<Name>,
    shadow: bool,
    listeners: Vec<Arc<Listener>>,
    shadowed: AtomicU64,
    panics: AtomicU64,
}

impl Report {
    /// A report as this one but for what `change` sets; counts begin anew.
    fn changed(&self, change: impl FnOnce(&mut Reporting)) -> Self {
        let (name, shadow, listeners) = match &self.0 {
            Some(old) => (old.name.clone(), old.shadow, old.listeners.clone()),
            None => (None, false, Vec::new()),
        };
        let mut reporting = Reporting {
            name,
            shadow,
            listeners,
            shadowed: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        };
        change(&mut reporting);
        Self(Some(Arc::new(reporting)))
    }

    pub(super) fn named(&self, name: Name) -> Self {
        self.changed(|reporting| reporting.name = Some(name))
    }

    pub(super) fn shadow(&self) -> Self {
        self.changed(|reporting| reporting.shadow = true)
    }

    pub(super) fn listened(&self, listener: Arc<Listener>) -> Self {
        self.changed(|reporting| reporting.listeners.push(listener))
    }

    pub(super) fn name(&self) -> Option<&Name> {
        self.0.as_ref()?.name.as_ref()
    }

    /// Whether there is nothing to report, by any name, nor any shadow mode.
    #[inline]
    pub(super) fn is_silent(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn is_shadow(&self) -> bool {
        self.0.as_ref().is_some_and(|reporting| reporting.shadow)
    }

    /// Whether anyone asks for events, and so for a second clock reading.
    #[inline]
    pub(super) fn is_heard(&self) -> bool {
        match &self.0 {
            Some(reporting) => !reporting.listeners.is_empty(),
            None => false,
        }
    }

    pub(super) fn shadowed(&self) -> u64 {
        let count = |reporting: &Arc<Reporting>| reporting.shadowed.load(Ordering::Relaxed);
        self.0.as_ref().map_or(0, count)
    }

    pub(super) fn listener_panics(&self) -> u64 {
        let count = |reporting: &Arc<Reporting>| reporting.panics.load(Ordering::Relaxed);
        self.0.as_ref().map_or(0, count)
    }

    pub(super) fn count_shadowed(&self) {
        if let Some(reporting) = &self.0 {
            reporting.shadowed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Tells every listener. One that panics is counted and does not keep the others from hearing.
    pub(super) fn tell(&self, event: &RateLimitEvent<'_>) {
        let Some(reporting) = &self.0 else { return };
        for listener in &reporting.listeners {
            if catch_unwind(AssertUnwindSafe(|| listener(event))).is_err() {
                reporting.panics.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("name", &self.name())
            .field("shadow", &self.is_shadow())
            .field("heard", &self.is_heard())
            .finish()
    }
}
