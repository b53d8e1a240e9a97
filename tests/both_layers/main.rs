//! Both layers in one stack, and what is common to them.
#![allow(missing_docs)]

mod common_types;
#[cfg(feature = "http")]
mod router;
#[cfg(feature = "tonic")]
mod status;
