//! The types that keys can have, and how each is read from the file and from an environment variable.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use humantime_serde::re::humantime::{format_duration, parse_duration};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use toml::Value;

use super::{database_url, declare::Setting};

/// How callers prove who they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuthMode {
    #[default]
    Tokens,
    Disabled,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    #[default]
    Human,
    Json,
}

macro_rules! kinds {
    ($($type:ty, $takes:literal, $of_text:expr;)+) => { $(
        impl Setting for $type {
            const TAKES: &'static str = $takes;

            fn of_value(value: &Value) -> Option<Self> {
                value.clone().try_into().ok()
            }

            fn of_text(text: &str) -> Option<Self> {
                $of_text(text)
            }

            fn shown(&self) -> Option<Value> {
                Value::try_from(self).ok()
            }
        }
    )+ };
}

kinds! {
    bool, "true or false", flag;
    u32, "a whole number", |text: &str| text.parse().ok();
    usize, "a whole number", |text: &str| text.parse().ok();
    f64, "a number", |text: &str| text.parse().ok();
    String, "a text", quoted;
    SocketAddr, "an IP address and a port", quoted;
    AuthMode, "\"tokens\" or \"disabled\"", quoted;
    LogFormat, "\"human\" or \"json\"", quoted;
    Vec<String>, "a list of texts", |text: &str| Some(list(text));
    Vec<PathBuf>, "a list of paths", |text: &str| Some(list(text));
    BTreeMap<String, String>, "a table of texts", quoted;
    BTreeMap<String, Vec<String>>, "a table of lists", quoted;
}

fn quoted<T: Setting>(text: &str) -> Option<T> {
    T::of_value(&text.into())
}

/// Comma-separated.
fn list<T: From<String>>(text: &str) -> Vec<T> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.to_owned().into()).collect()
}

/// What TAO takes for yes and no.
fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "y" | "on" => Some(true),
        "0" | "false" | "no" | "n" | "off" => Some(false),
        _ => None,
    }
}

impl<T: Setting> Setting for Option<T> {
    const TAKES: &'static str = T::TAKES;

    fn of_value(value: &Value) -> Option<Self> {
        T::of_value(value).map(Some)
    }

    fn of_text(text: &str) -> Option<Self> {
        T::of_text(text).map(Some)
    }

    fn shown(&self) -> Option<Value> {
        self.as_ref()?.shown()
    }
}

impl Setting for Duration {
    const TAKES: &'static str = "a duration";

    fn of_value(value: &Value) -> Option<Self> {
        Self::of_text(value.as_str()?)
    }

    fn of_text(text: &str) -> Option<Self> {
        parse_duration(text).ok()
    }

    fn shown(&self) -> Option<Value> {
        Some(format_duration(*self).to_string().into())
    }
}

impl Setting for PathBuf {
    const TAKES: &'static str = "a path";

    fn of_value(value: &Value) -> Option<Self> {
        value.as_str().map(Self::from)
    }

    fn of_text(text: &str) -> Option<Self> {
        Some(text.into())
    }

    /// An empty path stands for a default that depends on the machine.
    fn shown(&self) -> Option<Value> {
        (!self.as_os_str().is_empty()).then(|| self.display().to_string().into())
    }
}

impl Setting for SecretString {
    const TAKES: &'static str = "a text";

    fn of_value(value: &Value) -> Option<Self> {
        value.as_str().map(Self::from)
    }

    fn of_text(text: &str) -> Option<Self> {
        Some(text.into())
    }

    fn shown(&self) -> Option<Value> {
        Some(database_url::redacted(self).into())
    }
}
