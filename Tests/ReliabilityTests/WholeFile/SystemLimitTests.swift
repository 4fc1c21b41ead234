import Foundation
import Holdfast
import HoldfastAtomicStore
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Signals and process limits of the operating system, while whole-file stores open and save.
@Suite(.serialized, .ownThreads) struct SystemLimitTests {
  private let folder: TemporaryFolder
  private var path: String { folder.file("harbour") }

  init() throws { folder = TemporaryFolder() }

  #if os(Linux)
    /// A thousand signals per second interrupt system calls. 10,000 saves with `HOLDFAST_TESTS=full`.
    @Test(arguments: FileStore.wholeFile)
    func RC4_signalsDisturbNoSave(store: FileStore) async {
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [folder = folder.path as String, store = store as FileStore, saves = TestTier.count(500, full: 10_000) as Int] in
        let path = folder + "/harbour"
        let context = try Harbour.context(store.description(at: path))
        let storm = SignalStorm()
        var save = 0
        do {
          // Until there were enough saves and enough signals, however long that takes.
          while save < saves || storm.count < saves / 10 {
            save += 1
            demand(try Voyage.saveNext(context) == save, "Save \(save) has another number.")
            if save % 100 == 0 { context.reset() }
          }
        } catch { complain("\(error)") }
        storm.stop()
        try context.persistentStoreCoordinator.close()
        let again = try Harbour.context(store.description(at: path))
        demand(try Voyage.check(again) == (save, nil), "Saves are missing.")
        try again.persistentStoreCoordinator.close()
        demand(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == [".harbour.lock", "harbour"], "A file is left.")
        print("REPORT RC4, \(store): \(save) saves, \(storm.count) signals, no error")
      }
      report(child)
    }

    /// Limits from a process that can open no file to one that can open every file it needs.
    @Test(arguments: FileStore.wholeFile)
    func RC8_tooFewDescriptorsAreATypedErrorAndNoneIsLeftOpen(store: FileStore) async {
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [folder = folder.path as String, store = store as FileStore] in
        let path = folder + "/harbour"
        try Harbour.makeFile(store.description(at: path))
        let opened = try Harbour.context(store.description(at: folder + "/other"))
        var (saves, refused, saved) = (12, 0, 0)
        for budget in 3...40 {
          let before = Limits.openDescriptors
          do {
            let (context, made) = try Limits.with(RLIMIT_NOFILE, budget) {
              let context = try Harbour.context(store.description(at: path))
              return (context, Result { try Voyage.saveNext(context) })
            }
            switch made {
            case .success: (saves, saved) = (saves + 1, saved + 1)
            case .failure(let error):
              refused += 1
              demand(Limits.isOfDescriptors(error, path) && context.hasChanges, "\(budget) descriptors: \(error)")
              // With more descriptors, the same save succeeds.
              try context.save()
              saves += 1
            }
            demand(try Voyage.check(context) == (saves, nil), "\(budget) descriptors")
            try context.persistentStoreCoordinator.close()
          } catch {
            refused += 1
            demand(Limits.isOfDescriptors(error, path), "\(budget) descriptors: \(error)")
          }
          demand(Limits.openDescriptors == before, "\(budget) descriptors: \(before) were open, \(Limits.openDescriptors) are")
          // A store that is already open saves or refuses, and stays usable.
          let other = Limits.with(RLIMIT_NOFILE, budget) { Result { try Voyage.saveNext(opened) } }
          if case .failure(let error) = other {
            demand(Limits.isOfDescriptors(error, folder + "/other") && opened.hasChanges, "\(budget) descriptors, open: \(error)")
            try opened.save()
          }
          demand(Limits.openDescriptors == before, "\(budget) descriptors, open: \(before) were open, \(Limits.openDescriptors) are")
        }
        demand(refused >= 2 && saved >= 2, "\(refused) refused, \(saved) saved")
        demand(try Voyage.check(opened) == (38, nil), "The open store lost a save.")
        try opened.persistentStoreCoordinator.close()
        print("REPORT RC8, \(store): of 38 budgets of descriptors \(refused) too small, \(saved) enough")
      }
      report(child)
    }

    /// A limit of the file size that the process may write. A larger save is refused, and the old file stays.
    @Test(arguments: FileStore.wholeFile)
    func RC8_aFileSizeLimitOfTheProcessIsATypedErrorAndLosesNothing(store: FileStore) async {
      let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
        [folder = folder.path as String, store = store as FileStore] in
        // A program that handles the error must ignore this signal, like `SIGPIPE` for pipes.
        signal(SIGXFSZ, SIG_IGN)
        let path = folder + "/harbour"
        try Harbour.makeFile(store.description(at: path))
        let size = try TemporaryFolder.read(path).count
        let context = try Harbour.context(store.description(at: path))
        var (saves, refused, saved) = (12, 0, 0)
        for limit in stride(from: 0, through: 2 * size, by: max(1, size / 16)) {
          let (before, descriptors) = (try TemporaryFolder.read(path), Limits.openDescriptors)
          let made = Limits.with(RLIMIT_FSIZE, limit) { Result { try Voyage.saveNext(context) } }
          saves += 1
          if case .failure(let error) = made {
            refused += 1
            let storeError = error as? StoreError
            demand(storeError?.code == .diskFull && storeError?.path == path && context.hasChanges, "\(limit) bytes: \(error)")
            demand(try TemporaryFolder.read(path) == before, "\(limit) bytes: the file was changed.")
            demand(try store.fault(at: path) == nil && Limits.openDescriptors == descriptors, "\(limit) bytes: something is left.")
            try context.save()
          } else {
            saved += 1
          }
          demand(try Voyage.check(context) == (saves, nil), "\(limit) bytes")
        }
        try context.persistentStoreCoordinator.close()
        demand(refused >= 2 && saved >= 2, "\(refused) refused, \(saved) saved")
        print("REPORT RC8, \(store): of \(refused + saved) file size limits \(refused) too small, \(saved) enough")
      }
      report(child)
    }
  #endif
}

#if os(Linux)
  /// Limits of the process.
  enum Limits {
    /// Runs a closure with a limit on this process.
    static func with<Value>(_ kind: __rlimit_resource, _ limit: Int, _ body: () throws -> Value) rethrows -> Value {
      let resource = __rlimit_resource_t(kind.rawValue)
      var old = rlimit()
      getrlimit(resource, &old)
      var new = rlimit(rlim_cur: rlim_t(limit), rlim_max: old.rlim_max)
      setrlimit(resource, &new)
      defer { setrlimit(resource, &old) }
      return try body()
    }

    static var openDescriptors: Int { ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []).count }

    static func isOfDescriptors(_ error: any Error, _ path: String) -> Bool {
      guard let error = error as? StoreError, error.path == path, error.code == .inputOutput else { return false }
      return [EMFILE, ENFILE].contains((error.cause as? FileSystemError)?.number ?? 0)
    }
  }
#endif
