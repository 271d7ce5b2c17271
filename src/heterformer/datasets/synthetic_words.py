"""The words of the synthetic network: what each sub-topic's titles say, and what two fields both say."""

from itertools import chain

# Field, sub-topic, and the words by which a title gives the sub-topic away: each word is of one sub-topic.
FIELDS = {
    "machine learning": {
        "deep learning": "backpropagation dropout perceptron convolutional autoencoder overfitting minibatch "
        "pretrained softmax residual pruning distillation",
        "reinforcement learning": "bandit actor-critic q-learning reward robot imitation exploration markov "
        "simulator rollout exploitation agent",
        "computer vision": "image segmentation pixel camera detection video pose visual depth facial scene "
        "object",
        "recommender systems": "recommendation user click rating personalization collaborative ranking item "
        "cold-start playlist session browsing",
        "graph learning": "graph link-prediction node-classification message-passing knowledge-graph "
        "heterogeneous metapath subgraph community laplacian spectral inductive",
    },
    "electrical engineering": {
        "power systems": "substation grid voltage turbine photovoltaic inverter blackout electricity "
        "generator microgrid outage feeder",
        "circuit design": "cmos analog digital vlsi fpga transistor layout clocking dram chip nanometer "
        "low-power",
        "wireless communications": "antenna mimo beamforming ofdm spectrum fading broadband 5g uplink "
        "interference modulation handover",
        "control engineering": "pid controller actuator servo closed-loop lyapunov stabilization setpoint "
        "observer disturbance tracking hydraulic",
        "signal processing": "fourier wavelet radar sonar denoising microphone waveform doppler kalman "
        "compressive quantization audio",
    },
    "distributed systems": {
        "fault tolerance": "crash replica quorum paxos raft failover checkpointing rollback fault-tolerant "
        "redundancy heartbeat failure-detector",
        "cloud computing": "cloud datacenter serverless container virtual-machine autoscaling tenant "
        "kubernetes elastic microservice hypervisor provisioning",
        "databases": "database query sql indexing relational concurrency-control key-value snapshot oltp "
        "schema nosql joins",
        "operating systems": "filesystem scheduler thread memory-management paging linux interrupt cache "
        "multicore driver syscall deadlock",
        "blockchain": "blockchain ledger bitcoin smart-contract peer-to-peer overlay gossip miner "
        "decentralized cryptographic wallet sybil",
    },
    "history": {
        "ancient history": "roman athenian sparta pharaoh hellenistic papyrus senate caesar carthage "
        "mesopotamia gladiator mycenaean",
        "medieval history": "feudal crusade monastery knight carolingian chivalry castle bishop papal norman "
        "viking abbey",
        "early modern history": "reformation tudor habsburg enlightenment renaissance witchcraft ottoman "
        "puritan jesuit absolutism stuart mercenary",
        "military history": "war battle army soldier trench napoleonic artillery navy regiment veteran siege "
        "battlefield",
        "colonial history": "colonialism slavery plantation imperial missionary settler abolition "
        "decolonization raj frontier apartheid indigenous",
    },
    "biology": {
        "genetics": "gene genome chromosome allele mutation dna heredity genotype mendelian locus crispr "
        "epigenetic",
        "ecology": "habitat species predator forest biodiversity wetland pollinator invasive grassland "
        "conservation foraging ecosystem",
        "evolution": "darwinian phylogeny fossil speciation adaptation ancestor hominid cambrian dinosaur "
        "vertebrate mimicry natural-selection",
        "microbiology": "bacteria microbe biofilm yeast fungal coli archaea microbiome bacteriophage spore "
        "fermentation prokaryote",
        "neurobiology": "synapse hippocampus cortical axon neuron dendrite dopamine cerebellum rodent "
        "olfactory glial zebrafish",
    },
    "chemistry": {
        "organic chemistry": "aldehyde alkene aromatic ketone enantioselective cyclization ester amine "
        "stereochemistry aryl heterocycle alkylation",
        "electrochemistry": "battery lithium electrode cathode anode electrolyte corrosion redox voltammetry "
        "supercapacitor electrolysis sodium-ion",
        "polymer chemistry": "polymer copolymer monomer polymerization plastic hydrogel rubber polyethylene "
        "nylon resin elastomer crosslinked",
        "catalysis": "zeolite palladium hydrogenation platinum photocatalytic oxidation nickel ruthenium "
        "methane syngas organocatalysis turnover",
        "analytical chemistry": "chromatography spectrometry titration nmr isotope electrophoresis hplc "
        "calibration assay fluorescence raman adsorption",
    },
    "linguistics": {
        "syntax": "verb noun pronoun subject-verb adjective preposition relative-clause morphosyntax "
        "wh-movement passive ergative constituent",
        "phonology": "vowel consonant phoneme syllable prosody intonation tonal nasal phonetic accent rhyme "
        "vocalic",
        "semantics": "meaning metaphor pragmatics implicature lexical quantifier presupposition polysemy "
        "anaphora indefinite modality idiom",
        "sociolinguistics": "dialect bilingual multilingual slang speaker creole pidgin vernacular "
        "politeness diglossia code-mixing honorific",
        "language acquisition": "child infant toddler second-language classroom fluency literacy vocabulary "
        "immersion babbling caregiver learner",
    },
    "economics": {
        "macroeconomics": "monetary gdp unemployment fiscal central-bank recession wage stagflation "
        "keynesian deficit taxation austerity",
        "finance": "stock portfolio hedge dividend asset-pricing equity investor derivatives arbitrage bank "
        "mutual-fund credit",
        "game theory": "auction nash bargaining payoff bidder mechanism-design incentive oligopoly duopoly "
        "cooperative prisoner monopoly",
        "development economics": "poverty microfinance household rural inequality smallholder remittance "
        "subsidy foreign-aid schooling village informal-sector",
        "international trade": "export import wto globalization supply-chain multinational outsourcing "
        "comparative-advantage customs offshoring dumping protectionism",
    },
    "medicine": {
        "oncology": "cancer tumor chemotherapy metastasis leukemia melanoma carcinoma radiotherapy breast "
        "lymphoma biopsy remission",
        "cardiology": "heart cardiac stroke hypertension coronary artery ventricular arrhythmia myocardial "
        "aortic cholesterol pacemaker",
        "infectious diseases": "virus vaccine influenza malaria hiv tuberculosis hepatitis covid-19 "
        "antibiotic epidemic sepsis infection",
        "psychiatry": "schizophrenia anxiety bipolar psychosis antidepressant autism psychotherapy suicide "
        "insomnia ptsd adolescent mental",
        "surgery": "surgical laparoscopic transplant anesthesia postoperative knee orthopedic fracture "
        "incision implant wound hip",
    },
    "physics": {
        "quantum physics": "qubit entanglement quantum superposition decoherence photon squeezed "
        "teleportation bell fermion hamiltonian interferometer",
        "astrophysics": "galaxy star supernova black-hole telescope redshift quasar planet solar dark-matter "
        "neutron-star cosmological",
        "particle physics": "quark hadron higgs boson neutrino collider lepton muon gluon gauge "
        "standard-model antimatter",
        "condensed matter": "superconductor graphene magnetism lattice topological-insulator phonon "
        "ferromagnetic semiconductor hall-effect moire superfluid bandgap",
        "fluid dynamics": "turbulence vortex navier-stokes reynolds viscosity boundary-layer laminar "
        "convection bubble droplet aerodynamic jet",
    },
}

# The words that two fields share. Every field is in three pairs, so that a pair's two fields use its words
# equally often; a word may be in several pairs.
AMBIGUOUS = {
    ("machine learning", "electrical engineering"): "transformer network gate filter bias gain feedback "
    "encoder channel signal noise capacity",
    ("electrical engineering", "physics"): "field charge current potential resistance wave conductor "
    "coupling oscillator plasma impulse resonance",
    ("physics", "chemistry"): "bond orbital phase crystal radiation energy state spin excitation density "
    "particle diffusion",
    ("chemistry", "biology"): "solution base membrane synthesis reaction chain complex compound nucleus "
    "residue peptide transport",
    ("biology", "medicine"): "cell culture tissue expression marker strain plasma vector host receptor "
    "immunity pathway",
    ("medicine", "economics"): "depression recovery treatment contraction intervention shock exposure risk "
    "contagion stress crisis burden",
    ("economics", "history"): "interest trade reform labor panic currency union estate capital guild tariff "
    "famine",
    ("history", "distributed systems"): "byzantine consensus partition leader election generals federation "
    "conflict authority membership protocol delegation",
    ("distributed systems", "linguistics"): "agreement binding reference register cluster switching "
    "dependency message token ordering scope coordination",
    ("linguistics", "machine learning"): "tree embedding attention corpus grammar feature alignment "
    "inference representation acquisition transfer parsing",
    ("machine learning", "distributed systems"): "kernel network cluster tree node hashing batch pipeline "
    "parallel workload optimization partition",
    ("electrical engineering", "biology"): "cell circuit sensor stimulus signal network channel pulse rhythm "
    "amplification inhibition oscillation",
    ("medicine", "physics"): "plasma radiation pressure imaging resonance mass laser scattering flow pulse "
    "tomography field",
    ("chemistry", "economics"): "bond exchange equilibrium solution elasticity volatility concentration "
    "balance yield stability rate growth",
    ("history", "linguistics"): "script manuscript inscription origin borrowing tradition migration contact "
    "culture translation narrative period",
}

OPENINGS = (
    "towards",
    "a study of",
    "an analysis of",
    "on the",
    "new results on",
    "a note on",
    "rethinking",
    "understanding",
    "the role of",
    "an introduction to",
    "a comparison of",
    "advances in",
)
CONNECTORS = ("and", "for", "in", "with", "under", "from", "without", "beyond", "between", "through")
ENDINGS = ("revisited", "in practice", "in detail", "a survey", "a review", "reconsidered")

FIRST_NAMES = (
    "Ada Alan Amara Ana Anders Beatriz Carlos Chen Claire David Dina Elena Emre Eva Fatima Felix Grace Hana "
    "Hugo Ines Ivan Jin Jonas Kofi Laila Lars Leila Lin Lucia Marco Maria Mei Miguel Nadia Nils Noor Olga "
    "Omar Paula Pedro Priya Rahul Rosa Samir Sofia Tariq Tomas Ursula Victor Wei Yara Yuki Zainab Zoe"
)
LAST_NAMES = (
    "Abe Adeyemi Ahmed Almeida Andersson Bauer Becker Bianchi Castro Chandra Costa Dubois Eriksen Fischer "
    "Fontaine Garcia Gupta Haddad Hansen Hoffmann Horvat Ibrahim Ivanova Jansen Kaya Keller Khan Kim Kovacs "
    "Kowalski Larsen Lee Li Lopez Marino Mbeki Meyer Moreau Nakamura Nguyen Novak Okafor Olsen Papadakis "
    "Park Patel Petrov Popescu Ramos Rossi Sato Schmidt Silva Singh Sokolov Suzuki Tanaka Torres Virtanen "
    "Wagner Walker Wang Weber Williams Yilmaz Zhang Zhao"
)

INITIALS = "A. B. C. D. E. F. G. H. I. J. K. L. M. N. O. P. R. S. T. V. W."

SUBTOPICS_PER_FIELD = 5
FIELD_NAMES = tuple(FIELDS)
# Sub-topic s is of field s % 10: a network too small for all 50 takes the first ones and has every field.
SUBTOPICS = [(f, tuple(FIELDS[f])[place]) for place in range(SUBTOPICS_PER_FIELD) for f in FIELD_NAMES]
WORDS_PER_LIST = 12  # the same for all, so that word w of list i has the number 12 i + w
WORD_LISTS = [FIELDS[field][subtopic].split() for field, subtopic in SUBTOPICS]
PAIR_LISTS = [words.split() for words in AMBIGUOUS.values()]
PHRASES = (OPENINGS, CONNECTORS, ENDINGS)
VOCABULARY = list(chain(*WORD_LISTS, *PAIR_LISTS, *PHRASES))
