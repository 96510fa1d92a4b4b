//! The bytes of logs as lines of HTML: colours of terminals become classes, and a line that was written again and again is shown as it
//! was last.

mod colour;
mod lines;
mod paint;

pub(crate) use lines::{Line, Lines};
