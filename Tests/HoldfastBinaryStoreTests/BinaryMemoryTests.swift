import Foundation
import Holdfast
import HoldfastStore
import TestSupport
import Testing

/// The memory that files with impossible lengths and counts take, as reported by the operating system. Runs in its own process, because
/// other tests allocate memory at the same time.
@Suite(.ownThreads) struct BinaryMemoryTests {
  #if os(Linux)
    private static let numbers: [UInt64] = [
      0, 1, 1 << 31 - 1, 1 << 31, 1 << 31 + 1, 1 << 32 - 1, 1 << 32, 1 << 32 + 1, 1 << 62, 1 << 63 - 1, 1 << 63, .max - 1, .max,
    ]

    @Test func RX17_lengthsAndCountsThatCannotBeAreRefusedWithoutTakingMemory() async {
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        let file = try BinaryTestFile()
        let context = try file.context()
        try Library.fill(context)
        try context.persistentStoreCoordinator.close()
        let whole = try file.bytes()
        let entryCount = BinaryParts(whole).entryCount
        // Allocate first what any file needs, and check that the measurement shows an allocation.
        try file.open()
        var (shown, ones) = (0, [UInt8]())
        shown = try ProcessMemory.taken { ones = Array(repeating: 1, count: 8 << 20) }
        demand(shown >= 7 << 20 && ones.last == 1, "8 MiB are measured as \(shown) bytes.")
        ones = []
        let addresses = ProcessMemory.peakOfAddresses
        var (refused, most) = (0, 0)
        func check(_ changed: BinaryParts, _ name: String, mustBeRefused: Bool) throws {
          guard changed.bytes != whole else { return }
          try file.write(changed.bytes)
          var refusal: StoreError?
          // The code of a refusal is loaded on its first run, which counts as memory. Memory taken because of the file is taken every time.
          let first = try ProcessMemory.taken { refusal = file.refusal() }
          let taken = try first <= 1 << 20 ? first : ProcessMemory.taken { refusal = file.refusal() }
          demand(taken <= 1 << 20, "\(name): \(taken) bytes")
          demand(refusal?.code != .general && (refusal != nil || !mustBeRefused), "\(name): \(String(describing: refusal))")
          (refused, most) = (refused + (refusal == nil ? 0 : 1), max(most, taken))
        }
        for number in Self.numbers {
          for field in 0..<6 where field != 3 {
            let changed = BinaryParts(whole, footer: { $0.set(number, at: 8 * field) })
            try check(changed, "footer \(field) \(number)", mustBeRefused: true)
          }
          for entry in 0..<entryCount {
            for field in [1, 2, 4, 5, 6] {
              let changed = BinaryParts(whole, directory: { $0.set(number, at: entry * 56 + 8 * field) })
              // The reader may ignore the range of an index, and the count of a section that exists once.
              try check(changed, "entry \(entry) \(field) \(number)", mustBeRefused: false)
            }
          }
        }
        demand(refused > entryCount * 20, "\(refused) were refused.")
        // Unused address space isn't reserved either. Such a number would reserve at least 2 GiB.
        let reserved = ProcessMemory.peakOfAddresses - addresses
        demand(reserved < 1 << 30, "\(reserved) bytes of addresses")
        print("REPORT RX17: \(refused) files, at most \(most >> 10) KiB taken")
      }
      report(child)
    }
  #endif
}
