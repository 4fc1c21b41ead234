import HoldfastAtomicStore
import HoldfastStore
import HoldfastStoreConformance
import Synchronization

/// A part of a JSON store that a flawed store doesn't verify.
struct UnverifiedMember: Sendable {
  /// The text where the part begins and the text where the next one begins.
  private let bounds: (start: [UInt8], end: [UInt8])
  /// The bytes of the file before it was damaged.
  private let intact = Intact()

  private final class Intact: Sendable { let bytes = Mutex<[UInt8]?>(nil) }

  init?(_ flaw: Flaw?) {
    switch flaw {
    case .ignoresDamagedModel: bounds = (Array("\"model\":".utf8), Array(",\n\"entities\":{".utf8))
    case .ignoresDamagedNextKeys: bounds = (Array("\"nextKeys\":".utf8), Array("\"metadata\":".utf8))
    default: return nil
    }
  }

  /// The same place, with stores that open a file without verifying its digest if only this part was damaged.
  func place(_ place: StorePlace) -> StorePlace {
    guard let path = place.description.location?.path, let file = place.file else { return place }
    var place = place
    place.file?.read = { [intact] in
      let bytes = try file.read()
      intact.bytes.withLock { $0 = $0 ?? bytes }
      return bytes
    }
    var options = WholeFileOptions()
    options.allowsUnverified = true
    let unverified = WholeFileHarness.json.describe(path, false, options)
    place.description.makeStore = { [makeStore = place.description.makeStore] in
      isOnlyDamagedPart((try? file.read()) ?? []) ? unverified.makeStore() : makeStore()
    }
    return place
  }

  private func isOnlyDamagedPart(_ bytes: [UInt8]) -> Bool {
    guard let intact = intact.bytes.withLock({ $0 }), intact.count == bytes.count, intact != bytes,
      let start = intact.firstRange(of: bounds.start)?.lowerBound, let end = intact.firstRange(of: bounds.end)?.lowerBound
    else { return false }
    return intact[..<start] == bytes[..<start] && intact[end...] == bytes[end...]
  }
}
