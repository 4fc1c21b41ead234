import Foundation
import HoldfastStore
import Testing

@Suite struct SaveOriginTests {
  @Test func idsAreRandomUUIDsOfVersion4() {
    let ids = (0..<1000).map { _ in SaveOrigin.newID() }
    #expect(Set(ids).count == ids.count)
    for id in ids { #expect(id.uuid.6 >> 4 == 4 && id.uuid.8 >> 6 == 2, "\(id)") }
    // Each of the other 122 bits has both values.
    var (ones, zeros) = ([UInt8](repeating: 0, count: 16), [UInt8](repeating: 0, count: 16))
    for id in ids {
      withUnsafeBytes(of: id.uuid) {
        for place in 0..<16 { (ones[place], zeros[place]) = (ones[place] | $0[place], zeros[place] | ~$0[place]) }
      }
    }
    for place in 0..<16 where place != 6 && place != 8 { #expect(ones[place] == 0xFF && zeros[place] == 0xFF) }
  }

  @Test func aRequestKeepsItsOriginWhenEncoded() throws {
    let origin = SaveOrigin(author: "importer", contextName: "night", time: Date(timeIntervalSinceReferenceDate: 700_000_000.5))
    let request = SaveRequest(origin: origin)
    #expect(try JSONDecoder().decode(SaveRequest.self, from: JSONEncoder().encode(request)).origin == origin)
    #expect(SaveRequest().origin == nil)
  }

  /// Recordings contain it.
  @Test func aTimeIsEncodedInSecondsAndDecodedExactly() throws {
    for seconds in [0, 0.1 + 0.2, -1e9 - 0.25, 785_000_000.1234567] {
      let origin = SaveOrigin(time: Date(timeIntervalSinceReferenceDate: seconds))
      let decoded = try JSONDecoder().decode(SaveOrigin.self, from: JSONEncoder().encode(origin))
      #expect(decoded == origin && decoded.time.timeIntervalSinceReferenceDate.bitPattern == seconds.bitPattern)
    }
    let text = try JSONEncoder().encode(SaveOrigin(time: Date(timeIntervalSinceReferenceDate: 700_000_000.5)))
    #expect(String(decoding: text, as: UTF8.self).contains(#""time":700000000.5"#))
  }
}
