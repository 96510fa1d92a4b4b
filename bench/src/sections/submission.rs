use crate::{Bench, row::Row};

pub(crate) fn run(_bench: &Bench, _rows: &mut Vec<Row>) -> anyhow::Result<()> {
    anyhow::bail!("it is not written yet")
}
