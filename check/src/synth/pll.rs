//! Clocks that a board can make of its oscillator's.

use super::boards::Board;
use std::ops::RangeInclusive;

/// How a family's PLL makes a clock: it divides the oscillator's by `input`, multiplies that by `feedback`, and has
/// inside a clock that is `output` times as fast as the one that comes out (of iCE40, which feeds the inner clock back,
/// that inner clock is the one that is multiplied).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pll {
    /// EHXPLLL.
    Ecp5,
    /// SB_PLL40_PAD: at the pin of the oscillator.
    Ice40,
    /// rPLL.
    Gowin,
}

/// A clock for the core.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Step {
    /// How fast it is.
    pub khz: u32,
    /// What makes it; None is the oscillator itself.
    pub divisors: Option<Divisors>,
}

/// See [`Pll`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub struct Divisors {
    pub input: u32,
    pub feedback: u32,
    pub output: u32,
}

/// The fastest clock that is looked for: no core comes near it.
const MOST_KHZ: u32 = 200_000;

/// Whole kHz only, since identify tells kHz.
fn exactly(numerator: u64, denominator: u32) -> Option<u32> {
    let whole = numerator.is_multiple_of(denominator.into());
    whole.then(|| (numerator / u64::from(denominator)) as u32)
}

impl Pll {
    /// What divides the oscillator's clock, in kHz, for one of `khz`.
    fn divisors(self, oscillator: u32, khz: u32) -> Option<Divisors> {
        let Limits { inputs, feedbacks, outputs, compared, inner } = self.limits();
        let found = inputs.flat_map(|input| outputs.iter().map(move |&output| (input, output))).filter_map(|found| {
            let (input, output) = found;
            if !oscillator.is_multiple_of(input) || !compared.contains(&(oscillator / input)) {
                return None;
            }
            // Of iCE40 the inner clock is fed back.
            let fed_back = if self == Pll::Ice40 { u64::from(khz) * u64::from(output) } else { khz.into() };
            let feedback = exactly(fed_back * u64::from(input), oscillator)?;
            let fits = feedbacks.contains(&feedback) && inner.contains(&(khz * output));
            fits.then_some(Divisors { input, feedback, output })
        });
        // The inner clock in the middle of its range.
        let middle = (inner.start() + inner.end()) / 2;
        found.min_by_key(|found| ((khz * found.output).abs_diff(middle), found.input))
    }

    fn limits(self) -> Limits {
        match self {
            Pll::Ecp5 => Limits {
                inputs: 1..=128,
                feedbacks: 1..=128,
                outputs: (1..=128).collect(),
                compared: 3125..=400_000,
                inner: 400_000..=800_000,
            },
            Pll::Ice40 => Limits {
                inputs: 1..=16,
                feedbacks: 1..=128,
                outputs: (1..=6).map(|log| 1 << log).collect(),
                compared: 10_000..=133_000,
                inner: 533_000..=1_066_000,
            },
            Pll::Gowin => Limits {
                inputs: 1..=64,
                feedbacks: 1..=64,
                outputs: vec![2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128],
                compared: 3000..=400_000,
                inner: 500_000..=1_250_000,
            },
        }
    }

    /// The slowest clock that comes out.
    fn least_khz(self) -> u32 {
        match self {
            Pll::Ecp5 => 10_000,
            Pll::Ice40 => 16_000,
            Pll::Gowin => 4_000,
        }
    }

    /// The text between the net `pin` of the oscillator and `clk` and `locked`.
    pub(super) fn verilog(self, oscillator: u32, step: Step) -> String {
        let Some(Divisors { input, feedback, output }) = step.divisors else {
            return "  assign clk = clk_pin;\n  assign locked = 1'b1;\n".into();
        };
        let mhz = |khz: u32| f64::from(khz) / 1000.0;
        match self {
            Pll::Ecp5 => format!(
                "  (* FREQUENCY_PIN_CLKI = \"{}\" *) (* FREQUENCY_PIN_CLKOP = \"{}\" *)
  (* ICP_CURRENT = \"12\" *) (* LPF_RESISTOR = \"8\" *)
  EHXPLLL #(
    .CLKI_DIV({input}), .CLKFB_DIV({feedback}), .CLKOP_DIV({output}), .CLKOP_CPHASE({}), .CLKOP_FPHASE(0),
    .CLKOP_ENABLE(\"ENABLED\"), .FEEDBK_PATH(\"CLKOP\"), .OUTDIVIDER_MUXA(\"DIVA\"),
    .PLLRST_ENA(\"DISABLED\"), .STDBY_ENABLE(\"DISABLED\"), .DPHASE_SOURCE(\"DISABLED\"), .INTFB_WAKE(\"DISABLED\")
  ) pll (
    .CLKI(clk_pin), .CLKFB(clk), .CLKOP(clk), .LOCK(locked), .RST(1'b0), .STDBY(1'b0), .ENCLKOP(1'b0),
    .PHASESEL0(1'b0), .PHASESEL1(1'b0), .PHASEDIR(1'b0), .PHASESTEP(1'b0), .PHASELOADREG(1'b0), .PLLWAKESYNC(1'b0)
  );
",
                mhz(oscillator),
                mhz(step.khz),
                output - 1
            ),
            Pll::Ice40 => format!(
                "  SB_PLL40_PAD #(
    .FEEDBACK_PATH(\"SIMPLE\"), .DIVR(4'd{}), .DIVF(7'd{}), .DIVQ(3'd{}), .FILTER_RANGE(3'd{})
  ) pll (
    .PACKAGEPIN(clk_pin), .PLLOUTGLOBAL(clk), .LOCK(locked), .RESETB(1'b1), .BYPASS(1'b0)
  );
",
                input - 1,
                feedback - 1,
                output.ilog2(),
                // The filter goes by the clock that is compared.
                [17, 26, 44, 66, 101].iter().filter(|&&most| oscillator / input >= 1000 * most).count() + 1,
            ),
            Pll::Gowin => format!(
                "  rPLL #(
    .FCLKIN(\"{}\"), .DEVICE(\"GW2A-18\"), .IDIV_SEL({}), .FBDIV_SEL({}), .ODIV_SEL({output}),
    .DYN_IDIV_SEL(\"false\"), .DYN_FBDIV_SEL(\"false\"), .DYN_ODIV_SEL(\"false\"), .CLKFB_SEL(\"internal\"),
    .CLKOUT_BYPASS(\"false\"), .PSDA_SEL(\"0000\"), .DYN_DA_EN(\"false\"), .DUTYDA_SEL(\"1000\")
  ) pll (
    .CLKIN(clk_pin), .CLKOUT(clk), .LOCK(locked), .RESET(1'b0), .RESET_P(1'b0), .CLKFB(1'b0),
    .FBDSEL(6'd0), .IDSEL(6'd0), .ODSEL(6'd0), .PSDA(4'd0), .DUTYDA(4'd0), .FDLY(4'd0)
  );
",
                mhz(oscillator),
                input - 1,
                feedback - 1,
            ),
        }
    }
}

/// What divides, and how fast what is compared and what is inside may be, in kHz.
struct Limits {
    inputs: RangeInclusive<u32>,
    feedbacks: RangeInclusive<u32>,
    outputs: Vec<u32>,
    compared: RangeInclusive<u32>,
    inner: RangeInclusive<u32>,
}

impl Board {
    /// The clocks that it can have, the slowest first: multiples of a fraction of the oscillator's, and that itself.
    pub fn steps(&self) -> Vec<Step> {
        let oscillator = self.oscillator.khz;
        let grain = |parts: u32| oscillator.is_multiple_of(parts).then_some(oscillator / parts);
        // Eighths and fifths of 25 MHz; of 12 MHz what the inner clock's divisor by 32 leaves; ninths of 27 MHz.
        let grains = [8, 5, 32, 9].into_iter().filter_map(grain);
        let mut all: Vec<u32> = grains.flat_map(|grain| (1..=MOST_KHZ / grain).map(move |k| k * grain)).collect();
        all.push(oscillator);
        all.sort_unstable();
        all.dedup();
        all.into_iter().filter_map(|khz| self.step(khz)).collect()
    }

    /// The step of this clock, if there is one.
    pub fn step(&self, khz: u32) -> Option<Step> {
        let oscillator = self.oscillator.khz;
        if khz == oscillator {
            return Some(Step { khz, divisors: None });
        }
        let pll = self.family.pll;
        let divisors = Some(khz).filter(|khz| (pll.least_khz()..=MOST_KHZ).contains(khz));
        let divisors = divisors.and_then(|khz| pll.divisors(oscillator, khz))?;
        Some(Step { khz, divisors: Some(divisors) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every step gives its clock, within what the device allows; there are enough of them, and the oscillator is one.
    #[test]
    fn steps_are_what_their_divisors_make() {
        for board in Board::ALL {
            let (oscillator, pll) = (board.oscillator.khz, board.family.pll);
            let steps = board.steps();
            assert!(steps.windows(2).all(|pair| pair[0].khz < pair[1].khz));
            assert!(steps.contains(&Step { khz: oscillator, divisors: None }), "{}", board.name);
            let near: Vec<u32> =
                steps.iter().map(|step| step.khz).filter(|khz| (20_000..80_000).contains(khz)).collect();
            assert!(near.windows(2).all(|pair| pair[1] - pair[0] <= 5000), "{}: {near:?}", board.name);
            for Step { khz, divisors } in steps {
                let Some(Divisors { input, feedback, output }) = divisors else { continue };
                let compared = oscillator / input;
                let (inner, out) = match pll {
                    Pll::Ice40 => (compared * feedback, compared * feedback / output),
                    _ => (compared * feedback * output, compared * feedback),
                };
                let limits = pll.limits();
                assert_eq!(out, khz, "{} {divisors:?}", board.name);
                assert!(limits.inner.contains(&inner) && limits.compared.contains(&compared), "{divisors:?}");
            }
        }
    }

    #[test]
    fn known_settings() {
        let step = |board: &str, khz| Board::find(board).unwrap().step(khz);
        let divisors = |input, feedback, output| Some(Divisors { input, feedback, output });
        assert_eq!(step("ulx3s-85f", 50_000).unwrap().divisors, divisors(1, 2, 12));
        assert_eq!(step("icebreaker", 18_000).unwrap().divisors, divisors(1, 48, 32));
        assert_eq!(step("tangprimer-20k", 54_000).unwrap().divisors, divisors(1, 2, 16));
        assert_eq!(step("ulx3s-85f", 50_001), None);
        assert_eq!(step("icebreaker", 13_000), None, "below what comes out of that PLL");
        let text = Pll::Ice40.verilog(12_000, step("icebreaker", 18_000).unwrap());
        assert!(text.contains(".DIVR(4'd0), .DIVF(7'd47), .DIVQ(3'd5), .FILTER_RANGE(3'd1)"), "{text}");
    }
}
