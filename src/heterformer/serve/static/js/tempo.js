// How many points one frame has: as many as this machine draws fluently, which it learns from frame to frame.

const FIRST = 100_000; // points, before anything is known of the machine
const FEWEST = 25_000;
const MOST = 8_000_000;
const FLUENT = 20, SLOW = 40; // milliseconds of a frame: below the one more points fit, above the other fewer

export class Tempo {
  constructor() {
    this.points = FIRST;
  }

  /** The frame in which points were drawn took so many milliseconds until the next. */
  note(took) {
    if (took > SLOW) this.points = Math.max(FEWEST, this.points * Math.max(0.6, SLOW / took));
    else if (took < FLUENT) this.points = Math.min(MOST, this.points * 1.1);
  }
}
