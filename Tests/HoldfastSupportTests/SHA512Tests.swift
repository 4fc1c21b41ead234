import HoldfastSupport
import Testing

/// Published vectors of FIPS 180-4, and digests of ``pattern(_:)`` around every boundary that padding knows.
@Suite struct SHA512Tests {
  @Test(arguments: [
    (
      "", "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
    ),
    (
      "abc",
      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
    ),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "204a8fc6dda82f0a0ced7beb8e08a41657c16ef468b228a8279be331a703c33596fd15c13b1b07f9aa1d3bea57789ca031ad85c7a71dd70354ec631238ca3445"
    ),
    (
      "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn" + "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
      "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909"
    ),
  ])
  func publishedMessagesHaveTheirPublishedDigests(message: String, digest: String) {
    #expect(hexadecimal(SHA512.hash(Array(message.utf8))) == digest)
  }

  @Test func aMillionTimesTheLetterAHasItsPublishedDigest() {
    let message = [UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000)
    #expect(
      hexadecimal(SHA512.hash(message))
        == "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973ebde0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b"
    )
  }

  @Test(arguments: [
    (0, "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"),
    (1, "365d11a1dfe610b60efa996136d37ab8afd2715b8c6bc2850dc5e6005b702bb9f59b0f306ecb2c43ee44c429967d45843524eb2f7c16aab9bde142ee268b51c6"),
    (
      55, "330eb5e81b4d722cae1e0efbf883efb180c3e346d2b3b797dafc90409583ed35af65dc2d7974a353f0c21663e196b60d3ee5a2c70c50b7b3bccdb93a5dbce6bf"
    ),
    (
      56, "1b5b63bfd5420b2dc480abce3dbdb3e19e5f9d4fabffba7764883937eaae878a55362c938c141712c44c3076c3fabb2c60814c2994c311c33049a8d6de2a8898"
    ),
    (
      57, "909cad7c59ce1bf85c5f52fa6ad3104cddccce5e380453f124c6a3c570c421dc6a6160c4d42abb0cf71f735bd81cbbe08355b400961361f5050f3fab673aa418"
    ),
    (
      63, "b16f76c30db64b5ee1ef166d2d37e13ff6cee9fd88bae9ba283cd58e0a2133b220a76db56279406461f84ce2cffd1d116d38fd9f38fc5df18770a987ff695499"
    ),
    (
      64, "4c7aba3659929c4fd87604c532a3b5f174d0626b2d661dbbbfac76c97a49a5a7789d2c68324c754f66bf629fa72054f334feaad8b1cf4c885ae03a1e634afc18"
    ),
    (
      65, "31ad8ce60482e91ec7f83455c280f2dbb4940a400795ae90815bc86891210ebe07b51995eb2d123d6a55a79a998e20cc07716aea7848f6c955b4a4bf14ad0b0a"
    ),
    (
      111,
      "da780d8338a8a920ceb6892cb4ecbb0cc0c66956269aadd5dd0f48790a00857bd975890f3b2955a317738cc7a770820c29f922ffbc22020f1909d594cc987d1b"
    ),
    (
      112,
      "053182f7fa4e59f8636e415a77ed4fdc650f0a43834c9d35adf899599c3ab9c4153f02ff50bd01888060cd36a6fa12d9db242fc35164c80135613514186d5843"
    ),
    (
      113,
      "766fea2f90094ecec1166ea4d6e9ddc6ae6fbe4a060e049300ecbe631a7d6547409b6ac39865409e6dd5dada112955fddf32698feb98806c1910f446ac5af7e3"
    ),
    (
      119,
      "c6203c98db894a187e332570d8b0c317766be115afc7afa530e00ef42f2aa7492a7a4bba9b81762cf2a635c9bd22bde8fd85868d1214e48ae057cd7b69fdd7ff"
    ),
    (
      120,
      "f138c42e1f58da8b1e7a14810a424cbe8b1baa4976b7853f4c9a856609fea684a6e9ee070abe81b88f3289b6711687eb751da453942e4eb6e5609212e8b08739"
    ),
    (
      127,
      "a7a75593826fd37d4e60f6101eabb9f8ab1cf4d5319ebc805266d5da8deb5097de1a235fc5d9d3d73c50ac100ffc75089fb454674ab61232091bd19cbdc67396"
    ),
    (
      128,
      "df007a08f3aaae47e0c92ef840ecd43645ae6098c819f2a4a66174ef1cd49e5c6dfccf0616895e570b7564af641de5863dff9f89c752913d30cf0ecf678e1635"
    ),
    (
      129,
      "a10ea769b79831bca33e9efb29fc501ded6e9c88885d079acb76eecaa8ac58d68bdc7e00103053e1519352c0d064c87accc3d553a6039decc2c4f1e7667eef79"
    ),
    (
      1000,
      "b41d42e106eca6bf57123566b7ed1550c37d33af23afbfa8e302dfd44c988b3003a26b4140ef42f535e66ea424e7c4a31616307269e6d520a6508f726da23d0a"
    ),
  ])
  func messagesAroundBlockBoundariesHaveTheirDigests(count: Int, digest: String) {
    #expect(hexadecimal(SHA512.hash(pattern(count))) == digest)
  }

  @Test(arguments: [1, 3, 63, 64, 65, 127, 128, 129, 500])
  func piecesOfAnySizeGiveTheDigestOfTheWhole(size: Int) {
    let message = pattern(1000)
    var hasher = SHA512()
    for piece in pieces(of: message, size: size) { hasher.update(piece) }
    #expect(hasher.finalize() == SHA512.hash(message))
  }

  @Test func aCollectionThatIsNotContiguousIsHashedLikeAnArray() {
    var hasher = SHA512()
    hasher.update(pattern(300).lazy.map { $0 })
    #expect(hasher.finalize() == SHA512.hash(pattern(300)))
  }

  @Test func aCopyContinuesOnItsOwn() {
    var hasher = SHA512()
    hasher.update(Array("ab".utf8))
    let copy = hasher
    hasher.update(Array("c".utf8))
    #expect(hasher.finalize() == SHA512.hash(Array("abc".utf8)))
    #expect(copy.finalize() == SHA512.hash(Array("ab".utf8)))
  }
}
