import HoldfastSupport
import Testing

/// Hashes made by the reference implementation of the xxHash specification.
@Suite struct XXHash64Tests {
  @Test(
    arguments: [
      ("", 0, 0xEF46_DB37_51D8_E999),
      ("a", 0, 0xD24E_C4F1_A98C_6E5B),
      ("abc", 0, 0x44BC_2CF5_AD77_0999),
      ("abc", 2_654_435_761, 0x1318_DF30_094A_85FD),
      ("The quick brown fox jumps over the lazy dog", 0, 0x0B24_2D36_1FDA_71BC),
      ("", .max, 0x298F_4C84_B24F_5380),
    ] as [(String, UInt64, UInt64)])
  func knownMessagesHaveTheirHashes(message: String, seed: UInt64, hash: UInt64) {
    #expect(XXHash64.hash(Array(message.utf8), seed: seed) == hash)
  }

  @Test(
    arguments: [
      (1, 0xA96C_7F0C_E858_BBB7, 0x7634_9A43_0E97_F416),
      (3, 0x56E6_9576_32A4_87F9, 0xC42D_A545_EB6F_8983),
      (4, 0xC60D_15B1_E3FF_8F04, 0x52C5_131F_0829_D5FD),
      (5, 0x8088_1585_8624_DD4E, 0x75C0_B8CE_2660_AA50),
      (7, 0xAFBE_FC3D_6C6F_9A8E, 0xF1A4_6CF9_25E5_669E),
      (8, 0x3DA5_C7AA_2696_83E0, 0x6580_DC86_ECA5_0F6C),
      (9, 0x4B17_A9BA_9E21_5C09, 0xC198_7CF0_F755_CD92),
      (12, 0x8FE8_AB1C_1FD0_666E, 0x1919_45C2_5AA0_ADD8),
      (15, 0xAE2A_37EB_9357_CAA7, 0x9A18_E944_C774_D93B),
      (16, 0xA19A_D429_B02B_C413, 0xC683_E593_FC6D_CAFD),
      (31, 0x4A74_F3A1_A39A_D4A1, 0x99F2_22FF_5E63_79D1),
      (32, 0x8D57_D6A4_671C_C43D, 0xA784_AE39_E74A_5A70),
      (33, 0x62C9_FD21_ED85_7664, 0xD39B_34C7_9F78_9080),
      (36, 0xA447_5C60_6B0A_BC3C, 0x279E_4778_B0AE_0938),
      (63, 0x5C32_0A0D_2707_057F, 0x83F6_300C_55E3_F539),
      (64, 0x7BBA_BBC4_5729_D17E, 0x0961_219A_B771_DD46),
      (65, 0xF398_0C34_BAE6_5DC1, 0x6243_9E44_5492_849F),
      (100, 0xEFA0_AD2D_3E70_C151, 0x8DA8_3BA6_A3C5_979D),
      (127, 0x4822_F4E6_7F60_EA91, 0xB995_FE46_CE53_BB5A),
      (128, 0x725A_5B9B_3BED_FE94, 0x13F9_F830_7F78_B5D4),
      (1000, 0x9959_4F48_2804_3D35, 0x9665_7C99_7118_F796),
    ] as [(Int, UInt64, UInt64)])
  func messagesAroundStripeBoundariesHaveTheirHashes(count: Int, unseeded: UInt64, seeded: UInt64) {
    #expect(XXHash64.hash(pattern(count)) == unseeded)
    #expect(XXHash64.hash(pattern(count), seed: 0x9E37_79B1_85EB_CA8D) == seeded)
  }

  @Test(arguments: [1, 3, 31, 32, 33, 64, 500])
  func piecesOfAnySizeGiveTheHashOfTheWhole(size: Int) {
    let message = pattern(1000)
    var hasher = XXHash64(seed: 42)
    for piece in pieces(of: message, size: size) { hasher.update(piece) }
    #expect(hasher.finalize() == XXHash64.hash(message, seed: 42))
  }

  @Test func aStreamShorterThanAStripeIsHashedLikeOneMessage() {
    var hasher = XXHash64()
    #expect(hasher.finalize() == 0xEF46_DB37_51D8_E999)
    hasher.update(pattern(17))
    #expect(hasher.finalize() == XXHash64.hash(pattern(17)))
  }

  @Test func unalignedBytesAreRead() {
    let message = pattern(101)
    let hash = message.withUnsafeBytes { XXHash64.hash(UnsafeRawBufferPointer(rebasing: $0[1...])) }
    #expect(hash == XXHash64.hash(Array(message.dropFirst())))
  }
}
