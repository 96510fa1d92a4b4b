//! Fewer points with the same shape: largest triangle, three buckets (Steinarsson 2013).

/// The indices of at most `most` points, in order. The first and the last point, the least and the greatest value are among them,
/// unless `most` is less than four. Points are pairs of place and value; both are finite.
pub(super) fn chosen(points: &[(f64, f64)], most: usize) -> Vec<usize> {
    if points.len() <= most {
        return (0..points.len()).collect();
    }
    let last = points.len() - 1;
    let value = |index: &usize| points[*index].1;
    let lowest = (0..points.len()).min_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(0);
    let highest = (0..points.len()).max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(0);
    let mut chosen = vec![0, lowest, highest, last];
    chosen.sort_unstable();
    chosen.dedup();
    if let Some(buckets) = most.checked_sub(chosen.len()).filter(|buckets| *buckets > 0) {
        chosen.extend(largest_triangles(points, buckets));
    }
    chosen.sort_unstable();
    chosen.dedup();
    chosen.truncate(most);
    chosen
}

/// One point of each bucket between the first point and the last one: that with the largest triangle to the point before and to the
/// middle of the bucket after.
fn largest_triangles(points: &[(f64, f64)], buckets: usize) -> impl Iterator<Item = usize> {
    let last = points.len() - 1;
    let begin = move |bucket: usize| 1 + bucket * (last - 1) / buckets;
    let mut before = 0;
    (0..buckets).map(move |bucket| {
        let (from, to) = (begin(bucket), begin(bucket + 1));
        let after = if bucket + 1 == buckets { last..last + 1 } else { to..begin(bucket + 2) };
        let next = middle(&points[after]);
        let mut best = (from, -1.0);
        for index in from..to {
            let size = triangle(points[before], points[index], next);
            if size > best.1 {
                best = (index, size);
            }
        }
        before = best.0;
        before
    })
}

#[expect(clippy::cast_precision_loss, reason = "a bucket has far fewer points than 2^52")]
fn middle(points: &[(f64, f64)]) -> (f64, f64) {
    let number = points.len().max(1) as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / number, y + point.1 / number));
    (x, y)
}

/// Twice its area.
fn triangle(a: (f64, f64), b: (f64, f64), c: (f64, f64)) -> f64 {
    ((a.0 - c.0) * (b.1 - a.1) - (a.0 - b.0) * (c.1 - a.1)).abs()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_points_stay_as_they_are() {
        assert!(chosen(&[], 5).is_empty());
        assert_eq!(chosen(&[(0.0, 1.0), (1.0, 2.0)], 2), [0, 1]);
    }

    #[test]
    fn a_peak_of_one_point_is_kept_wherever_it_is() {
        for peak in [1, 500, 998] {
            let mut points: Vec<_> = (0..1000).map(|x| (f64::from(x), 0.0)).collect();
            points[peak].1 = 9.0;
            assert!(chosen(&points, 10).contains(&peak), "{peak}");
        }
    }

    #[test]
    fn a_bend_is_kept_and_a_straight_line_needs_few_points() {
        // Straight down, then level: a bucket's point nearest to the bend stays.
        let points: Vec<_> = (0..1000).map(|x| (f64::from(x), f64::from((500 - x).max(0)))).collect();
        let kept = chosen(&points, 20);
        let nearest = kept.iter().map(|index| index.abs_diff(500)).min().unwrap();
        assert!(nearest <= 1, "{kept:?}");
    }

    #[test]
    fn one_point_too_many_costs_one_point() {
        let points: Vec<_> = (0..6).map(|x| (f64::from(x), f64::from(x % 2))).collect();
        assert_eq!(chosen(&points, 5).len(), 5);
        assert_eq!(chosen(&points, 3).len(), 3);
    }

    proptest! {
        #[test]
        fn the_ends_and_the_extremes_are_kept_in_order(
            values in proptest::collection::vec(prop_oneof![-1e3..1e3, Just(f64::MAX), Just(f64::MIN)], 1..400), most in 4_usize..60
        ) {
            let points: Vec<(f64, f64)> = values.iter().enumerate().map(|(x, y)| (f64::from(u32::try_from(x).unwrap()), *y)).collect();
            let kept = chosen(&points, most);
            prop_assert!(kept.len() <= most && kept.is_sorted_by(|a, b| a < b));
            prop_assert!(values.len() < most || kept.len() + 3 >= most, "{} of {most}", kept.len());
            prop_assert_eq!((kept[0], *kept.last().unwrap()), (0, values.len() - 1));
            let extreme = |of: &dyn Fn(f64, f64) -> f64, values: &mut dyn Iterator<Item = f64>| values.reduce(of);
            for of in [f64::min, f64::max] {
                let all = extreme(&of, &mut values.iter().copied());
                prop_assert_eq!(extreme(&of, &mut kept.iter().map(|index| values[*index])), all);
            }
        }
    }
}
