// What the allocator holds at a moment of the step, and where: from the columns of /api/predict?show=blocks.

/** Index of the last entry that is at most `value`; -1 where none is. */
function lastUpTo(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Microseconds at which the kernel starts that follows a moment; null where the run has no times. */
export function timeOf({ moments }, moment) {
  if (!moments.first?.length) return null;
  return moments.at_us[Math.max(0, lastUpTo(moments.first, moment))];
}

const alive = (rows, i, moment) => rows.from[i] <= moment && (rows.to[i] === null || moment < rows.to[i]);

/** Segments at a moment with their blocks and gaps: [{address, bytes, pool, stream, used, blocks: [index], free: [{address, bytes}]}]. */
export function segmentsAt({ blocks, segments }, moment) {
  const held = [];
  for (let i = 0; i < segments.bytes.length; i += 1)
    if (alive(segments, i, moment)) held.push({ address: segments.address[i], bytes: segments.bytes[i], pool: segments.pool[i], stream: segments.stream[i], used: 0, blocks: [], free: [] });
  let s = 0;
  const gap = (segment, address, end) => { if (end > address) segment.free.push({ address, bytes: end - address }); };
  let filled = held[0]?.address ?? 0;
  const close = () => { gap(held[s], filled, held[s].address + held[s].bytes); s += 1; filled = held[s]?.address; };
  for (let i = 0; i < blocks.bytes.length; i += 1) {
    if (!alive(blocks, i, moment)) continue;
    while (s < held.length && blocks.address[i] >= held[s].address + held[s].bytes) close();
    if (s >= held.length) break;
    gap(held[s], filled, blocks.address[i]);
    held[s].blocks.push(i);
    held[s].used += blocks.bytes[i];
    filled = blocks.address[i] + blocks.bytes[i];
  }
  while (s < held.length) close();
  return held;
}

/** What the segments come to: bytes in use and reserved, and the free ones: how many, how much, the largest. */
export function totals(held) {
  const free = held.flatMap((segment) => segment.free.map((f) => f.bytes));
  return {
    used: held.reduce((sum, s) => sum + s.used, 0), reserved: held.reduce((sum, s) => sum + s.bytes, 0), segments: held.length,
    freeBlocks: free.length, free: free.reduce((sum, b) => sum + b, 0), largest: free.reduce((most, b) => Math.max(most, b), 0),
  };
}

/** Addresses that are reserved at any time, one stretch after the other without what lies between: {bytes, place(address), back(place)}. */
export function stretches({ segments }, pool = 'all') {
  const merged = [];
  for (let i = 0; i < segments.bytes.length; i += 1) {
    if (pool !== 'all' && segments.pool[i] !== pool) continue;
    const end = segments.address[i] + segments.bytes[i];
    const last = merged.at(-1);
    if (last && segments.address[i] <= last.end) last.end = Math.max(last.end, end);
    else merged.push({ begin: segments.address[i], end });
  }
  let bytes = 0;
  for (const stretch of merged) {
    stretch.at = bytes;
    bytes += stretch.end - stretch.begin;
  }
  const begins = merged.map((stretch) => stretch.begin);
  const ats = merged.map((stretch) => stretch.at);
  return {
    bytes,
    place: (address) => {
      const stretch = merged[lastUpTo(begins, address)];
      return stretch && address < stretch.end ? stretch.at + address - stretch.begin : null;
    },
    back: (place) => {
      const stretch = merged[lastUpTo(ats, place)];
      return stretch && stretch.begin + place - stretch.at;
    },
  };
}
