//! Values as Postgres stores them, and back.

use std::{fmt::Display, str::FromStr, time::Duration};

use domain::{AttemptNo, SubmitFence, Timestamp};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use slurm::{ExitCode, SlurmJobId};

use crate::error::{Result, StoreError};

/// Milliseconds for `interval` arithmetic: exact, unlike a binary fraction of seconds.
#[expect(clippy::cast_precision_loss, reason = "whole milliseconds below 2^53 are exact in a double")]
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_millis() as f64
}

/// A duration from a column or an expression in milliseconds; zero for a negative one.
pub(crate) fn duration(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// A number for a `bigint`; the largest one for a number that does not fit.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A count; Postgres never returns a negative one.
pub(crate) fn count<T: TryFrom<i64> + Default>(number: i64) -> T {
    T::try_from(number).unwrap_or_default()
}

pub(crate) fn to_json(what: &'static str, value: &impl Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(|_| StoreError::Unstorable(what))
}

/// Reads the columns of one row. An error names the table, the column and the row.
#[derive(Clone, Copy)]
pub(crate) struct StoredRow<'a> {
    table: &'static str,
    key: &'a dyn Display,
}

impl<'a> StoredRow<'a> {
    pub(crate) fn of(table: &'static str, key: &'a dyn Display) -> Self {
        Self { table, key }
    }

    pub(crate) fn corrupt(self, column: &'static str) -> StoreError {
        StoreError::Corrupt { table: self.table, column, row: self.key.to_string() }
    }

    pub(crate) fn parse<T: FromStr>(self, column: &'static str, text: &str) -> Result<T> {
        text.parse().map_err(|_| self.corrupt(column))
    }

    pub(crate) fn parse_any<T: FromStr>(
        self,
        column: &'static str,
        text: Option<&String>,
    ) -> Result<Option<T>> {
        text.map(|text| self.parse(column, text)).transpose()
    }

    pub(crate) fn json<T: DeserializeOwned>(self, column: &'static str, text: &str) -> Result<T> {
        serde_json::from_str(text).map_err(|_| self.corrupt(column))
    }

    pub(crate) fn number<N: Into<i64>, T: TryFrom<i64>>(self, column: &'static str, number: N) -> Result<T> {
        T::try_from(number.into()).map_err(|_| self.corrupt(column))
    }

    pub(crate) fn attempt_no(self, number: i32) -> Result<AttemptNo> {
        AttemptNo::new(self.number("attempt", number)?).ok_or_else(|| self.corrupt("attempt"))
    }

    pub(crate) fn slurm_id(self, id: Option<i64>) -> Result<Option<SlurmJobId>> {
        let corrupt = || self.corrupt("slurm_job_id");
        id.map(|id| SlurmJobId::new(self.number("slurm_job_id", id)?).ok_or_else(corrupt)).transpose()
    }

    pub(crate) fn exit(self, code: Option<i16>, signal: Option<i16>) -> Result<Option<ExitCode>> {
        let exit = |(code, signal)| {
            Ok(ExitCode {
                code: self.number("exit_code", code)?,
                signal: self.number("exit_signal", signal)?,
            })
        };
        code.zip(signal).map(exit).transpose()
    }

    pub(crate) fn fence(
        self,
        newest: i32,
        cleared: i32,
        shut_at: Option<Timestamp>,
        absent_at: Option<Timestamp>,
    ) -> Result<SubmitFence> {
        Ok(SubmitFence {
            newest: self.number("submit_fence", newest)?,
            cleared: self.number("submit_fence_cleared", cleared)?,
            shut_at,
            absent_at,
        })
    }
}
