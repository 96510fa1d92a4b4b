//! Generic resources of a node as sinfo's `%G` lists them: `gpu:a100:8(S:0-1),nvme:1` (gres.conf(5)).

use std::collections::{BTreeMap, BTreeSet};

use crate::number::digits;

/// The number of GPUs in a list, and their types. Malformed entries do not count.
pub(crate) fn gpus(list: &str) -> (u32, BTreeSet<String>) {
    let (mut count, mut types) = (0_u32, BTreeSet::new());
    for entry in entries(list) {
        let mut parts = entry.split(':');
        if parts.next() != Some("gpu") {
            continue;
        }
        let parts: Vec<&str> = parts.collect();
        let (kind, number) = match parts.as_slice() {
            [] => (None, Some(1)),
            [one] => one.parse().map_or((Some(*one), Some(1)), |number| (None, Some(number))),
            [kind, number, ..] => (Some(*kind), number.parse::<u32>().ok()),
        };
        count = count.saturating_add(number.unwrap_or(0));
        types.extend(kind.filter(|kind| is_plain(kind)).map(str::to_owned));
    }
    (count, types)
}

/// The amount of each resource in a list, by `name` or `name:type`.
///
/// A part `no_consume` and the unit of an amount (`4G`) are Slurm's own (slurm.conf(5), `Gres`).
pub(crate) fn amounts(list: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for listed in entries(list) {
        let words: Vec<&str> = listed.split(':').filter(|word| *word != "no_consume").collect();
        let (name, number) = match words.as_slice() {
            [name] => ((*name).to_owned(), Some(1)),
            [name, end] => match number_of(end) {
                Some(number) => ((*name).to_owned(), Some(number)),
                None => (format!("{name}:{end}"), Some(1)),
            },
            [name, kind, end, ..] => (format!("{name}:{kind}"), number_of(end)),
            [] => continue,
        };
        if let Some(number) = number.filter(|_| is_plain(&name) && name != "(null)" && !name.is_empty()) {
            let sum: &mut u64 = found.entry(name).or_default();
            *sum = sum.saturating_add(number);
        }
    }
    found
}

fn number_of(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let factor = match &text[end..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1_u64 << 40,
        _ => return None,
    };
    digits::<u64>(&text[..end], 18)?.checked_mul(factor)
}

/// The entries without the sockets in parentheses, which may contain commas.
fn entries(list: &str) -> Vec<String> {
    let (mut entries, mut depth) = (vec![String::new()], 0_u32);
    for character in list.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => entries.push(String::new()),
            other if depth == 0 => {
                if let Some(entry) = entries.last_mut() {
                    entry.push(other);
                }
            }
            _ => {}
        }
    }
    entries
}

fn is_plain(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use test_case::test_case;

    use super::*;

    #[test_case("gpu:8", 8, &[] ; "without a type")]
    #[test_case("gpu:a100:8(S:0-1)", 8, &["a100"] ; "with type and sockets")]
    #[test_case("gpu:a100:4(S:0,1),gpu:v100:2(S:1),nvme:1", 6, &["a100", "v100"] ; "two types and something else")]
    #[test_case("gpu", 1, &[] ; "one without a number")]
    #[test_case("gpu:h100", 1, &["h100"] ; "a type without a number")]
    #[test_case("(null)", 0, &[] ; "nothing")]
    #[test_case("gpus:8,nvidia:gpu:3", 0, &[] ; "other resources")]
    #[test_case("gpu:99999999999", 1, &["99999999999"] ; "no number of GPUs")]
    fn gpus_are_counted(list: &str, count: u32, types: &[&str]) {
        assert_eq!(gpus(list), (count, types.iter().map(|kind| (*kind).to_owned()).collect()));
    }

    #[test_case("gpu:a100:8(S:0-1),mps:800", &[("gpu:a100", 8), ("mps", 800)] ; "a type and a number")]
    #[test_case("gpu:1g.5gb:4,gpu:2g.10gb:2", &[("gpu:1g.5gb", 4), ("gpu:2g.10gb", 2)] ; "instances of MIG")]
    #[test_case("bandwidth:lustre:no_consume:4G,shard:64", &[("bandwidth:lustre", 4 << 30), ("shard", 64)] ; "a unit")]
    #[test_case("nvme", &[("nvme", 1)] ; "only a name")]
    #[test_case("(null)", &[] ; "nothing")]
    fn amounts_are_read(list: &str, expected: &[(&str, u64)]) {
        let expected = expected.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect();
        assert_eq!(amounts(list), expected);
    }

    proptest! {
        #[test]
        fn no_list_makes_the_reader_panic(list in any::<String>()) {
            let _ = gpus(&list);
            let _ = amounts(&list);
        }
    }
}
