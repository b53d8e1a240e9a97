use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The name of a limiter or a breaker, as it appears in refusals, events and logs.
///
/// A static name costs nothing to copy, so a refusal that carries one writes nothing; a name made
/// at run time is shared, and copying it counts one reference.
///
/// ```
/// use tower_sluice::Name;
///
/// let fixed = Name::from("billing");
/// let made = Name::from(format!("shard-{}", 7));
/// assert_eq!(&*fixed, "billing");
/// assert_eq!(made.to_string(), "shard-7");
/// ```
#[derive(Clone)]
pub struct Name(Repr);

#[derive(Clone)]
enum Repr {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Name {
    /// Makes a name from a static string, in constants too.
    pub const fn from_static(name: &'static str) -> Self {
        Self(Repr::Static(name))
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Repr::Static(name) => name,
            Repr::Shared(name) => name,
        }
    }
}

/// The compiler's own code hands the place of the name to `Arc`'s, and with it that of the refusal
/// around it: nothing of a refusal then stays in registers, or is left out where it is not read.
impl Drop for Name {
    #[inline]
    fn drop(&mut self) {
        if let Repr::Shared(_) = self.0 {
            drop_apart(std::mem::replace(&mut self.0, Repr::Static("")));
        }
    }
}

#[cold]
#[inline(never)]
fn drop_apart(name: Repr) {
    drop(name);
}

impl From<&'static str> for Name {
    fn from(name: &'static str) -> Self {
        Self::from_static(name)
    }
}

impl From<String> for Name {
    fn from(name: String) -> Self {
        Self(Repr::Shared(name.into()))
    }
}

impl From<Arc<str>> for Name {
    fn from(name: Arc<str>) -> Self {
        Self(Repr::Shared(name))
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl std::hash::Hash for Name {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
