//! A set of task numbers of a job array, and how Slurm writes one.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use range_set_blaze::RangeSetBlaze;
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::{InvalidName, number::digits};

/// A set of task numbers, each at most [`TaskSet::MAX`]. As text: Slurm's ranges without spaces, `0-9,12,20-28:4`
/// (sbatch(1), `--array`); an empty text is the empty set. It is written in order and without steps.
///
/// It takes room for its ranges, not for its tasks.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, SerializeDisplay, DeserializeFromStr,
)]
pub struct TaskSet(RangeSetBlaze<u32>);

impl TaskSet {
    /// The largest task number that Slurm can be configured for (`MaxArraySize` 4000001, slurm.conf(5)).
    pub const MAX: u32 = 4_000_000;

    /// The one task of a job without an array, number 0.
    pub fn single() -> Self {
        Self::from(0)
    }

    /// The first `count` numbers: 0, 1, 2 and so on.
    pub fn first(count: u32) -> Self {
        count.checked_sub(1).map(|last| Self::from(0..=last)).unwrap_or_default()
    }

    /// Whether it has no task.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of tasks.
    pub fn len(&self) -> u32 {
        // At most MAX + 1.
        self.ranges().map(|range| range.end() - range.start() + 1).fold(0, u32::saturating_add)
    }

    /// Whether it has this task.
    pub fn contains(&self, task: u32) -> bool {
        self.0.contains(task)
    }

    /// The least task.
    pub fn least(&self) -> Option<u32> {
        self.0.first()
    }

    /// The greatest task.
    pub fn greatest(&self) -> Option<u32> {
        self.0.last()
    }

    /// Its tasks in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.0.iter()
    }

    /// Its ranges in order. Between two of them at least one number is missing.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u32>> {
        self.0.ranges()
    }

    /// Adds a task.
    pub fn insert(&mut self, task: u32) {
        self.0.insert(task);
    }

    /// The tasks of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }

    /// The tasks of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }

    /// The tasks that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    /// The sets of an array's pieces: tasks with the same number divided by `size` are one piece. `size` is above 0.
    ///
    /// A job's attempt of each piece is one sbatch, with indices below Slurm's `MaxArraySize`.
    pub fn pieces(&self, size: u32) -> Vec<(u32, Self)> {
        let size = size.max(1);
        let mut pieces: Vec<(u32, Self)> = Vec::new();
        for range in self.ranges() {
            for base in (range.start() / size..=range.end() / size).map(|piece| piece * size) {
                let part = Self::from(base.max(*range.start())..=(base + (size - 1)).min(*range.end()));
                match pieces.last_mut().filter(|(last, _)| *last == base) {
                    Some((_, piece)) => *piece = piece.union(&part),
                    None => pieces.push((base, part)),
                }
            }
        }
        pieces
    }

    /// The same tasks, each less by `base`; tasks below it are left out.
    #[must_use]
    pub fn less(&self, base: u32) -> Self {
        let moved = |range: RangeInclusive<u32>| {
            (*range.end() >= base).then(|| range.start().saturating_sub(base)..=range.end() - base)
        };
        self.ranges().filter_map(moved).collect()
    }

    /// The same tasks, each more by `base`.
    #[must_use]
    pub fn plus(&self, base: u32) -> Self {
        let moved = |n: &u32| n.saturating_add(base).min(Self::MAX);
        self.ranges().map(|range| moved(range.start())..=moved(range.end())).collect()
    }
}

impl From<u32> for TaskSet {
    fn from(task: u32) -> Self {
        Self::from(task..=task)
    }
}

impl From<RangeInclusive<u32>> for TaskSet {
    fn from(range: RangeInclusive<u32>) -> Self {
        Self(range.into())
    }
}

impl FromIterator<u32> for TaskSet {
    fn from_iter<I: IntoIterator<Item = u32>>(tasks: I) -> Self {
        Self(tasks.into_iter().collect())
    }
}

impl FromIterator<RangeInclusive<u32>> for TaskSet {
    fn from_iter<I: IntoIterator<Item = RangeInclusive<u32>>>(ranges: I) -> Self {
        Self(ranges.into_iter().collect())
    }
}

impl fmt::Display for TaskSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, range) in self.ranges().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match (range.start(), range.end()) {
                (first, last) if first == last => write!(f, "{comma}{first}")?,
                (first, last) => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for TaskSet {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let sets: Option<Vec<RangeSetBlaze<u32>>> = text.split(',').map(part).collect();
        let allowed = "task numbers up to 4000000 such as 0-9,12,20-28:4";
        let sets = sets.ok_or_else(|| InvalidName::new("set of tasks", allowed, text))?;
        Ok(Self(sets.into_iter().fold(RangeSetBlaze::new(), |all, part| all | part)))
    }
}

/// `7`, `7-9` or `0-8:4`.
fn part(text: &str) -> Option<RangeSetBlaze<u32>> {
    let number = |text| digits::<u32>(text, 7).filter(|number| *number <= TaskSet::MAX);
    let Some((first, rest)) = text.split_once('-') else {
        return Some(RangeSetBlaze::from_iter([number(text)?]));
    };
    let (last, step) = match rest.split_once(':') {
        Some((last, step)) => (last, number(step).filter(|step| *step > 0)?),
        None => (rest, 1),
    };
    let (first, last) = (number(first)?, number(last)?);
    match step {
        _ if first > last => None,
        1 => Some(RangeSetBlaze::from_iter([first..=last])),
        _ => Some((first..=last).step_by(step.try_into().ok()?).collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{collection::btree_set, prelude::*};
    use test_case::test_case;

    use super::*;

    fn set(text: &str) -> TaskSet {
        text.parse().unwrap()
    }

    #[test_case("0-9,12", "0-9,12"; "as sbatch takes it")]
    #[test_case("12,0-9,5,10", "0-10,12"; "in order, once")]
    #[test_case("0-8:4,1-3:2", "0-1,3-4,8"; "with steps")]
    #[test_case("4000000", "4000000"; "the greatest")]
    #[test_case("", ""; "none")]
    fn a_set_is_read_as_slurm_writes_it(text: &str, canonical: &str) {
        assert_eq!(set(text).to_string(), canonical);
    }

    #[test_case("-1"; "negative")]
    #[test_case("9-1"; "backwards")]
    #[test_case("0-8:0"; "no step")]
    #[test_case("4000001"; "too great")]
    #[test_case("0-7%4"; "a limit")]
    #[test_case("1,,2"; "a part without a number")]
    #[test_case("1, 2"; "a space")]
    #[test_case("1-7,..."; "cut by squeue")]
    fn anything_else_is_refused(text: &str) {
        assert!(text.parse::<TaskSet>().is_err());
    }

    #[test]
    fn an_array_is_cut_into_pieces_that_slurm_accepts() {
        let pieces = set("5,999-2001").pieces(1000);
        let texts: Vec<_> =
            pieces.iter().map(|(base, tasks)| (*base, tasks.less(*base).to_string())).collect();
        let expected = [(0, "5,999"), (1000, "0-999"), (2000, "0-1")];
        assert_eq!(texts, expected.map(|(base, text)| (base, text.to_owned())));
    }

    proptest! {
        #[test]
        fn a_set_has_the_tasks_it_was_made_of(tasks in btree_set(0..300_u32, 0..60), other in btree_set(0..300_u32, 0..60)) {
            let (set, others) = (TaskSet::from_iter(tasks.clone()), TaskSet::from_iter(other.clone()));
            prop_assert_eq!(set.to_string().parse::<TaskSet>().unwrap(), set.clone());
            prop_assert_eq!(set.iter().collect::<BTreeSet<_>>(), tasks.clone());
            prop_assert_eq!(usize::try_from(set.len()).unwrap(), tasks.len());
            prop_assert_eq!(set.union(&others).iter().collect::<BTreeSet<_>>(), &tasks | &other);
            prop_assert_eq!(set.intersection(&others).iter().collect::<BTreeSet<_>>(), &tasks & &other);
            prop_assert_eq!(set.without(&others).iter().collect::<BTreeSet<_>>(), &tasks - &other);
            prop_assert_eq!(set.plus(7).less(7), set);
        }

        #[test]
        fn pieces_are_the_whole_and_fit(tasks in btree_set(0..300_u32, 0..60), size in 1..50_u32) {
            let set = TaskSet::from_iter(tasks);
            let pieces = set.pieces(size);
            prop_assert!(pieces.iter().all(|(base, piece)| piece.less(*base).greatest() < Some(size)));
            prop_assert!(pieces.windows(2).all(|two| two[0].0 < two[1].0));
            let whole = pieces.iter().fold(TaskSet::default(), |whole, (base, piece)| whole.union(&piece.less(*base).plus(*base)));
            prop_assert_eq!(whole, set);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9,:%-]{0,20}|\\PC{0,20}") {
            let _ = text.parse::<TaskSet>();
        }
    }
}
