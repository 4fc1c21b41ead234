import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Tests rule X2 of the store contract: damaged and missing external files. Without ``StorePlace/externalFiles``, the case does nothing.
extension ExternalDataCases {
  /// How the contents of a file change.
  private enum Damage: CaseIterable {
    case changedByte, truncated, empty, longer, contentsOfOther, removed

    /// The damaged contents; nil if the file is removed.
    func apply(_ bytes: [UInt8], other: [UInt8]) -> [UInt8]? {
      var changed = bytes
      switch self {
      case .changedByte: changed[bytes.count / 2] ^= 0x80
      case .truncated: changed.removeLast()
      case .empty: changed = []
      case .longer: changed.append(0)
      case .contentsOfOther: changed = other
      case .removed: return nil
      }
      return changed
    }
  }

  private static let codes: Set<StoreError.Code> = [.damaged, .missingExternalData, .inputOutput, .tooLarge, .wrongType]

  static func damagedFiles(_ run: CaseRun) throws {
    let place = try run.makePlace()
    guard let list = place.externalFiles else { return }
    let images = [large(1), large(2)]
    let album = Album(try run.open(place, model)), keys = try album.insert(images.map(Optional.some))
    try run.close(album.store)
    let files = try list(), contents = try files.map { try $0.read() }
    guard files.count == images.count else { return run.fail("a file for each of 2 values of 1 MiB", got: "\(files.count) files") }
    for damage in Damage.allCases {
      // One file, so that the other value stays readable.
      if let damaged = damage.apply(contents[0], other: contents[1]) {
        try files[0].write(damaged)
      } else if let remove = files[0].remove {
        try remove()
      } else {
        continue
      }
      try expectError(run, Album(run.open(place, model)), keys, images, "\(damage)")
      try files[0].write(contents[0])
    }
    let restored = Album(try run.open(place, model))
    for (key, image) in zip(keys, images) {
      run.expect(try restored.value(key) == image, "the image after its file was restored to be unchanged", got: "another value")
    }
  }

  /// Expects all rows to be readable, and all values to be unchanged except for one, which may throw an error. Closes the store.
  private static func expectError(_ run: CaseRun, _ album: Album, _ keys: [ObjectKey], _ images: [Data], _ damage: String) throws {
    var errorCount = 0
    for (key, image) in zip(keys, images) {
      run.expectEqual(try album.row(key)[album.slot("title")], .string("Photo"), "the title of a photo whose file is damaged (\(damage))")
      do {
        let got = try album.value(key)
        run.expect(got == image, "an error or the saved bytes from a damaged file (\(damage))", got: "\(got?.count ?? -1) other bytes")
      } catch let error as StoreError {
        errorCount += 1
        run.expect(codes.contains(error.code), "an error for damaged data from a damaged file (\(damage))", got: error.description)
      }
    }
    // No error is correct, too: a store may have another copy of the bytes.
    run.expect(errorCount <= 1, "the other value to be readable if one file is damaged (\(damage))", got: "\(errorCount) errors")
    try run.close(album.store)
  }
}
