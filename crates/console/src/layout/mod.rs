//! The looks that pages share.

mod charts;
mod icon;
mod parts;
mod shell;
mod status;
mod time;

pub(crate) use charts::{Axis, Chart, Charts, Curve, charts_from};
pub(crate) use icon::{Icon, icon};
pub(crate) use parts::{
    Tab, button_form, bytes, copyable, facts, json, live, notice, number, pager, problem, tabs,
};
pub(crate) use shell::{Section, Shell, Visitor};
pub(crate) use status::{Kind, badge, counts, kind, meter};
pub(crate) use time::{ago, between, clock, duration, since, until};
