//! Whatever the types at the edge accept is safe in its place, whatever was given.

use proptest::prelude::*;
use slurm::RemotePath;

use crate::{
    cluster::{mount::Mount, target::ClusterName},
    request::text::{Label, Word},
};

/// Texts near the accepted ones, and texts far from them.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~\n\t\u{0}é]{0,40}",
        "/?[a-z0-9._:,/-]{0,30}",
        "/[a-z/]{1,9}:/[a-z]{1,9}(:r[ow])?"
    ]
}

proptest! {
    #[test]
    fn a_mount_cannot_smuggle_in_another(text in texts()) {
        if let Ok(mount) = text.parse::<Mount>() {
            let shown = mount.to_string();
            prop_assert!(shown.starts_with('/') && !shown.contains([',', '\n', '\0', '\t']), "{}", shown);
            prop_assert!(shown.split(':').count() <= 3);
            prop_assert_eq!(shown.parse::<Mount>().unwrap(), mount);
        }
    }

    #[test]
    fn a_word_needs_no_quoting(text in texts()) {
        if let Ok(word) = text.parse::<Word>() {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            prop_assert!(word.as_str().chars().all(plain) && !word.as_str().starts_with(['-', '.']));
            prop_assert_eq!(word.to_string(), text);
        }
    }

    #[test]
    fn a_cluster_name_needs_no_quoting(text in texts()) {
        if let Ok(name) = text.parse::<ClusterName>() {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.".contains(c);
            prop_assert!(name.as_str().chars().all(plain) && !name.as_str().starts_with(['-', '.']));
        }
    }

    #[test]
    fn a_label_stays_on_its_line_and_is_bounded(text in texts()) {
        if let Ok(label) = text.parse::<Label>() {
            prop_assert!(!label.as_str().contains(char::is_control) && label.as_str().chars().count() <= 500);
        }
    }

    #[test]
    fn a_path_of_a_mount_stays_below_it(source in "/[a-z]{1,5}(/[a-z]{1,5})?", path in "/[a-z./]{1,20}") {
        let (Ok(mount), Ok(path)) = (source.parse::<Mount>(), path.parse::<RemotePath>()) else { return Ok(()) };
        if let Some(found) = mount.on_cluster(&path) {
            let below = format!("{source}/");
            prop_assert!(found.as_str() == source || found.as_str().starts_with(&below));
        }
    }
}
