//! Tables that are put together while the program is compiled.

/// How many rows these parts of a table have together.
#[must_use]
pub const fn count<T>(parts: &[&[T]]) -> usize {
    let mut count = 0;
    let mut part = 0;
    while part < parts.len() {
        count += parts[part].len();
        part += 1;
    }
    count
}

/// The table of these parts, one after the other, which have `N` rows together.
///
/// # Panics
///
/// If the parts do not have `N` rows, or if the first one has none: while compiling, where the table is a constant.
#[must_use]
pub const fn joined<T: Copy, const N: usize>(parts: &[&[T]]) -> [T; N] {
    assert!(count(parts) == N, "parts of a table that do not have that many rows");
    let mut all = [parts[0][0]; N];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut row = 0;
        while row < parts[part].len() {
            all[at] = parts[part][row];
            at += 1;
            row += 1;
        }
        part += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: &[&[u8]] = &[&[1, 2], &[], &[3]];

    #[test]
    fn parts_follow_each_other() {
        assert_eq!(joined::<u8, { count(PARTS) }>(PARTS), [1, 2, 3]);
    }

    #[test]
    #[should_panic(expected = "that many rows")]
    fn a_table_has_the_rows_of_its_parts() {
        let _: [u8; 4] = joined(PARTS);
    }
}
