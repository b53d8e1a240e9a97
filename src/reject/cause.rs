//! What stands behind a refusal in its `source()` chain: with feature `tonic` a `Status`, so that
//! tonic's own error handling finds the right code; otherwise nothing.

#[cfg(feature = "tonic")]
mod status;
#[cfg(feature = "tonic")]
pub(crate) use status::Cause;

#[cfg(not(feature = "tonic"))]
mod none;
#[cfg(not(feature = "tonic"))]
pub(crate) use none::Cause;
