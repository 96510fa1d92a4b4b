//! Query parameters, read one by one so that each fault names its parameter.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use axum::{
    extract::{FromRequestParts, Query as Pairs},
    http::request::Parts,
};

use chrono::DateTime;
use domain::Timestamp;

use crate::{
    http::spelling::nearest,
    problem::{Kind, Problem},
    state::App,
};

/// The values of `limit`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageSize {
    default: u32,
    most: u32,
}

/// For lists.
pub(crate) const LISTED: PageSize = PageSize { default: 50, most: 200 };
/// For events.
pub(crate) const STREAMED: PageSize = PageSize { default: 100, most: 1000 };

/// The query parameters of a call.
pub(crate) trait FromQuery: Sized {
    /// The names of all parameters.
    const KNOWN: &'static [&'static str];

    fn from_query(parameters: &Parameters) -> Result<Self, Problem>;
}

/// The parsed query. Unknown parameters are refused: a misspelled filter would otherwise return everything.
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

/// A call without query parameters.
#[derive(Debug)]
pub(crate) struct NoParameters;

impl FromQuery for NoParameters {
    const KNOWN: &'static [&'static str] = &[];

    fn from_query(_: &Parameters) -> Result<Self, Problem> {
        Ok(Self)
    }
}

/// The raw query parameters.
#[derive(Debug)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn check(&self, known: &[&str]) -> Result<(), Problem> {
        for (name, value) in &self.0 {
            if !known.contains(&name.as_str()) {
                let shown: String = name.chars().take(40).collect();
                let detail = match (known, nearest(name, known.iter().copied())) {
                    ([], _) => "is unknown; this path has no parameters".to_owned(),
                    (_, Some(meant)) => format!("is unknown (did you mean `{meant}`?)"),
                    (known, None) => format!("is unknown; the known parameters are {}", known.join(", ")),
                };
                return Err(Problem::parameter(&shown, "unknown_parameter", detail));
            }
            // Postgres stores no NUL.
            if value.contains('\0') {
                return Err(Problem::parameter(name, "invalid", "must not contain NUL"));
            }
        }
        Ok(())
    }

    /// A parameter that may occur once.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut values = self.all(name);
        let first = values.next();
        if values.next().is_some() {
            return Err(Problem::parameter(name, "repeated", "must be given only once"));
        }
        Ok(first)
    }

    /// The same, parsed.
    pub(crate) fn parse<T: FromStr>(
        &self,
        name: &str,
        must: impl fmt::Display,
    ) -> Result<Option<T>, Problem> {
        let wrong = |_| Problem::parameter(name, "invalid", format!("must be {must}"));
        self.one(name)?.map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// A repeatable parameter, parsed.
    pub(crate) fn parse_all<T: FromStr>(
        &self,
        name: &str,
        must: impl fmt::Display,
    ) -> Result<Vec<T>, Problem> {
        let wrong = |_| Problem::parameter(name, "invalid", format!("must be {must}"));
        self.all(name).map(|text| text.parse().map_err(wrong)).collect()
    }

    /// A time in RFC 3339.
    pub(crate) fn moment(&self, name: &str) -> Result<Option<Timestamp>, Problem> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let moment = DateTime::parse_from_rfc3339(text).map_err(|_| {
            let detail = "must be a time in RFC 3339, such as 2026-01-31T09:00:00Z (write `+` as %2B)";
            Problem::parameter(name, "invalid", detail)
        })?;
        Ok(Some(moment.to_utc()))
    }

    /// A whole number within a range.
    pub(crate) fn number<T>(&self, name: &str, range: RangeInclusive<T>) -> Result<Option<T>, Problem>
    where
        T: TryFrom<u64> + PartialOrd + fmt::Display,
    {
        let must = format!("a whole number from {} to {}", range.start(), range.end());
        let Some(number) = self.parse::<u64>(name, &must)? else { return Ok(None) };
        let number = T::try_from(number).ok().filter(|number| range.contains(number));
        let wrong = || Problem::parameter(name, "out_of_range", format!("must be {must}"));
        number.map(Some).ok_or_else(wrong)
    }

    /// The most entries of a page.
    pub(crate) fn limit(&self, PageSize { default, most }: PageSize) -> Result<u32, Problem> {
        Ok(self.number("limit", 1..=most)?.unwrap_or(default))
    }

    /// A repeatable parameter.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
