//! The networks and limits of webhooks.

use std::time::Duration;

use domain::Networks;

use super::{problems::Problems, settings::Webhooks};

const LONGEST: Duration = Duration::from_mins(1);

pub(super) fn networks(settings: &Webhooks, problems: &mut Problems) -> Networks {
    if settings.timeout.is_zero() || settings.timeout > LONGEST {
        problems.add("webhooks.timeout", "must be above 0 and at most 1m; write for example \"10s\"");
    }
    if settings.max_attempts == 0 {
        problems.add("webhooks.max_attempts", "is 0; write for example 15");
    }
    let mut read = |text: &String| {
        let form = "a network is an address and a prefix length, such as 10.1.0.0/16 or fd00::/8";
        text.parse().map_err(|_| problems.add(format_args!("webhooks.allowed_networks: {text}"), form)).ok()
    };
    Networks::new(settings.allowed_networks.iter().filter_map(&mut read).collect())
}
