//! Driver of `nqueens`: solutions for each place of the first two queens. The seed changes nothing.

use super::{Device, KernelError, Output, check};

const SIZE: usize = 9;

pub(super) fn drive(device: &mut dyn Device, _seed: u64) -> Result<Output, KernelError> {
    device.launch()?;
    let want: Vec<u32> = (0..SIZE * SIZE)
        .map(|prefix| {
            let mut queens = vec![prefix / SIZE];
            if safe(&queens, prefix % SIZE) {
                queens.push(prefix % SIZE);
                solutions(&mut queens)
            } else {
                0
            }
        })
        .collect();
    check("solutions", &want, &device.read_words("solutions", want.len())?)?;
    Ok(Output::checked(want.len()))
}

/// Whether a queen in `column` of the next row is attacked by none; `queens` are the columns of the rows above.
fn safe(queens: &[usize], column: usize) -> bool {
    let above = queens.iter().rev().zip(1..);
    above.into_iter().all(|(&queen, rows)| queen != column && queen.abs_diff(column) != rows)
}

fn solutions(queens: &mut Vec<usize>) -> u32 {
    if queens.len() == SIZE {
        return 1;
    }
    let mut count = 0;
    for column in 0..SIZE {
        if safe(queens, column) {
            queens.push(column);
            count += solutions(queens);
            queens.pop();
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_queens_have_352_solutions() {
        assert_eq!(solutions(&mut Vec::new()), 352);
    }
}
