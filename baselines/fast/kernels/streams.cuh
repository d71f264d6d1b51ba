namespace gz {

// The first two bits of a word that the games' streams begin with 00 and 10.
enum TrainerStream : u32 { SHUFFLE = 0x40000000u, SAMPLER = 0xc0000000u };

GZ u32x4 trainer_bits(u64 seed, u32 stream, i64 counter, u32 row, u32 block) {
  const u32 high = (u32)((u64)counter >> 32) & 0x3fffffffu;
  return philox({block, stream | high, (u32)counter, row}, (u32)seed, (u32)(seed >> 32));
}

}  // namespace gz
