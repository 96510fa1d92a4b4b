//! The API as tools use it.

mod answers;
mod calls;

pub(crate) use answers::*;
pub(crate) use calls::*;
