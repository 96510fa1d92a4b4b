//! Query parameters, read one by one so that each fault names its parameter.

use std::{fmt, str::FromStr};

use axum::{
    extract::{FromRequestParts, Query as Pairs},
    http::request::Parts,
};

use chrono::DateTime;
use domain::Timestamp;

use crate::{
    problem::{Kind, Problem},
    state::App,
};

/// The parameters of an operation.
pub(crate) trait FromQuery: Sized {
    /// The names of all of them.
    const KNOWN: &'static [&'static str];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem>;
}

/// The parameters of an operation, read. One that is not known is refused: a filter with a typing error in its
/// name would otherwise show everything as if it matched.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: FromQuery> FromRequestParts<App> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let Pairs(pairs) = Pairs::<Vec<(String, String)>>::try_from_uri(&parts.uri).map_err(|_| {
            Problem::new(Kind::BadRequest, "The query string is not valid percent-encoded UTF-8.")
        })?;
        let parameters = Parameters(pairs);
        parameters.check(T::KNOWN)?;
        T::from_query(&parameters).map(Self)
    }
}

/// What an operation takes that has no parameters.
#[derive(Debug)]
pub(crate) struct NoParameters;

impl FromQuery for NoParameters {
    const KNOWN: &'static [&'static str] = &[];

    fn from_query(_: &Parameters) -> Result<Self, Problem> {
        Ok(Self)
    }
}

/// The parameters as they stand in the URL.
#[derive(Debug)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn check(&self, known: &[&str]) -> Result<(), Problem> {
        for (name, value) in &self.0 {
            if !known.contains(&name.as_str()) {
                let shown: String = name.chars().take(40).collect();
                let detail = match known {
                    [] => "is not known here; this path takes no parameters".to_owned(),
                    known => format!("is not known here; the known parameters are {}", known.join(", ")),
                };
                return Err(Problem::parameter(&shown, "unknown_parameter", detail));
            }
            // No stored text has one, and Postgres takes none.
            if value.contains('\0') {
                return Err(Problem::parameter(name, "invalid", "must not contain NUL"));
            }
        }
        Ok(())
    }

    /// A parameter that may be given once.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut values = self.all(name);
        let first = values.next();
        if values.next().is_some() {
            return Err(Problem::parameter(name, "repeated", "may be given once only"));
        }
        Ok(first)
    }

    /// The same, as a value.
    pub(crate) fn parse<T: FromStr>(
        &self,
        name: &str,
        must: impl fmt::Display,
    ) -> Result<Option<T>, Problem> {
        let wrong = |_| Problem::parameter(name, "invalid", format!("must be {must}"));
        self.one(name)?.map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// A moment.
    pub(crate) fn moment(&self, name: &str) -> Result<Option<Timestamp>, Problem> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let moment = DateTime::parse_from_rfc3339(text).map_err(|_| {
            let detail = "must be a moment of RFC 3339, such as 2026-01-31T09:00:00Z (write a `+` as %2B)";
            Problem::parameter(name, "invalid", detail)
        })?;
        Ok(Some(moment.to_utc()))
    }

    /// A whole number within bounds.
    pub(crate) fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Problem> {
        let bounds = format!("a whole number from {least} to {most}");
        match self.parse(name, &bounds)? {
            Some(number) if !(least..=most).contains(&number) => {
                Err(Problem::parameter(name, "out_of_range", format!("must be {bounds}")))
            }
            number => Ok(number),
        }
    }

    /// A parameter that may be repeated.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
